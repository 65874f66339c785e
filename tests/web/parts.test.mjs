// Parts of the chat page by themselves: growing markdown for every prefix of a text, hostile text, the event reader.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launchBrowser } from './browser.mjs';
import { cpuTime } from './cpu_time.mjs';
import { attack, markdownAnswer } from './mock.mjs';

const require = createRequire(new URL('../../web/package.json', import.meta.url));
const { build } = require('esbuild');

async function bundle(entry, options) {
  const source = fileURLToPath(new URL(`../../web/src/${entry}`, import.meta.url));
  const result = await build({ entryPoints: [source], bundle: true, write: false, logLevel: 'error', ...options });
  return result.outputFiles[0].text;
}

let browser;
let page;

before(async () => {
  browser = await launchBrowser();
  page = await browser.newPage();
  await page.addScriptTag({ content: await bundle('markdown_view.ts', { format: 'iife', globalName: 'markdown' }) });
});
after(() => browser?.close());

const kTexts = [
  markdownAnswer,
  attack,
  '- a\n\n- b\n\n  more of b\n- c\n\n1. one\n\n2. two\n   ```\n   code\n   ```\n10. ten\n\ntext',
  'Title\n=====\n\nOther\n---\n\n> quote\nlazy\n\n> again\n\n***\n* x\n+ y\n\n    indented code\n\n    more\n',
  '| a | b |\n|---|---|\n| `x` | y |\nafter\n\n~~~~js\nlet a = "~~~";\n~~~\nstill\n~~~~\n\nend ~~gone~~ **bold *both***',
  'See [one][1] and [two].\n\nText.\n\n[1]: https://example.com/1\n[two]: https://example.com/2 "title"\n\nLast.',
  '```\nnever closed\n\nwith empty lines\n',
  'one  \ntwo\\\nthree\r\nfour &amp; &lt; &#35; \\* ![image](https://example.com/i.png)',
  '\n\n\n   \n\ntext after empty lines\n\n\n\n',
  'ünïcödé 👩‍👩‍👧 zero\u0000byte \u2028 separators',
];

test('a growing answer ends as the whole one, from every prefix', async () => {
  for (const [index, text] of kTexts.entries()) {
    const { grown, whole } = await page.evaluate((source) => {
      const growing = new markdown.MarkdownView();
      for (let length = 0; length <= source.length; ++length) growing.set(source.slice(0, length), false);
      growing.set(source, true);
      const once = new markdown.MarkdownView();
      once.set(source, true);
      return { grown: growing.element.innerHTML, whole: once.element.innerHTML };
    }, text);
    assert.equal(grown, whole, `text ${index}`);
    assert.ok(whole.length > 0);
  }
});

test('hostile text costs little and never fails', async () => {
  const n = 100_000;
  const cases = {
    quotes: '>'.repeat(n),
    brackets: '['.repeat(n),
    links: '[a]('.repeat(n / 4),
    emphasis: '*a '.repeat(n / 3),
    stars: 'a**'.repeat(n / 3),
    ticks: Array.from({ length: 400 }, (_, i) => '`'.repeat(i)).join(' a '),
    lists: '- '.repeat(n / 2),
    nested: Array.from({ length: 300 }, (_, i) => `${' '.repeat(2 * i)}- a`).join('\n'),
    tags: '<a '.repeat(n / 3),
    comments: '<!-- '.repeat(n / 5),
    entities: '&a'.repeat(n / 2),
    mails: 'a@'.repeat(n / 2),
    table: `${'|a'.repeat(5000)}\n${'|-'.repeat(5000)}\n${'|a\n'.repeat(2000)}`,
    lines: 'a\n'.repeat(n / 2),
    urls: 'http://a.'.repeat(n / 9),
    slashes: '\\'.repeat(n),
    hashes: '#'.repeat(n),
    blanks: `${' '.repeat(n)}a`,
    code: `\`\`\`js\n${'a("'.repeat(n / 3)}`,
    html: `\`\`\`html\n${'<a '.repeat(n / 9)}\n\`\`\``,
    definitions: '[a]: b\n'.repeat(n / 7),
    images: '![a](http://b.c)'.repeat(1200),
  };
  const seconds = await cpuTime(page);
  for (const [name, text] of Object.entries(cases)) {
    const before = await seconds();
    await page.evaluate((source) => {
      const view = new markdown.MarkdownView();
      view.set(source.slice(0, source.length / 2), false);
      view.set(source, true);
    }, text);
    const took = (await seconds()) - before;
    if (process.env.HEARTH_TIMES) console.log(name, took.toFixed(3));
    assert.ok(took < 3, `${name} took ${took.toFixed(1)} s`);
  }
});

test('events are read whatever the pieces are', async () => {
  const code = await bundle('sse.ts', { format: 'esm' });
  const { readEvents } = await import(`data:text/javascript;base64,${Buffer.from(code).toString('base64')}`);
  const stream = ': note\r\n\r\ndata: {"a":"ü👩"}\n\ndata:two\r\rdata: x\r\ndata:  y\r\n\r\nevent: e\ndata: last';
  const bytes = new TextEncoder().encode(stream);
  for (const size of [1, 2, 3, 7, 1000]) {
    const body = new ReadableStream({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
        controller.close();
      },
    });
    const events = [];
    for await (const event of readEvents(body)) events.push(event);
    assert.deepEqual(events, ['{"a":"ü👩"}', 'two', 'x\n y', 'last'], `pieces of ${size}`);
  }
});
