// The page that `hearth serve` has at /, with the model in the box. Run by `./dev web --test`.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { idle, launchBrowser, takeShot } from './browser.mjs';

const kHearth = fileURLToPath(new URL('../../build/bin/hearth', import.meta.url));
const kLimitMs = 30_000;

let browser;
let server;
let url;
let page;
const log = [];
const problems = [];

before(async () => {
  browser = await launchBrowser();
  server = spawn(kHearth, ['serve', '--port', '0', '--device', 'cpu'], {
    env: { ...process.env, XDG_CONFIG_HOME: '/nonexistent' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  url = await new Promise((resolve, reject) => {
    server.on('error', reject);
    server.on('exit', (code) => reject(new Error(`hearth serve ended with ${code}: ${log.join('')}`)));
    server.stderr.setEncoding('utf8').on('data', (text) => {
      log.push(text);
      const found = /Listening on (\S+)/.exec(log.join(''));
      if (found) resolve(found[1]);
    });
  });
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, colorScheme: 'light' });
  page = await context.newPage();
  page.setDefaultTimeout(kLimitMs);
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !/^(data|blob):/.test(request.url())) problems.push(request.url());
  });
  await page.goto(url);
});
after(async () => {
  await browser?.close();
  server?.kill();
});

const field = () => page.getByLabel('Message', { exact: true });
const answers = () => page.locator('.answer');
const lastAnswer = () => answers().last();
const textOf = async (answer) => (await answer.locator('.markdown').last().textContent()).trim();
const lines = () =>
  log
    .join('')
    .split('\n')
    .filter((line) => line.includes('path=/v1/chat/completions'));

async function say(text) {
  await field().fill(text);
  await field().press('Enter');
  await lastAnswer().waitFor();
  await idle(page);
}

const shot = (name) => takeShot(page, `served-${name}`);

test('converse: the second turn is mostly cached', async () => {
  await say('Tell me a story about a fox who looks for a friend in the deep dark wood.');
  assert.ok((await textOf(lastAnswer())).length > 40);
  assert.match(await lastAnswer().locator('.numbers').textContent(), /\d tok\/s · \d+ tokens/);
  await say('And what did the bear say?');
  assert.match(await lastAnswer().locator('.numbers').textContent(), /[1-9]\d* cached/);
  assert.match(await page.locator('.meter').textContent(), /^[\d,]+ \/ [\d,]+$/);
  await shot('converse');
});

test('stop ends the request', async () => {
  await page.route('**/v1/chat/completions', (route) => {
    const body = { ...route.request().postDataJSON(), ignore_eos: true, max_tokens: 20000 };
    return route.continue({ postData: JSON.stringify(body) });
  });
  await field().fill('Tell me a story about a bear who looks for a friend in the deep dark wood.');
  await field().press('Enter');
  await page.waitForFunction(
    () => [...document.querySelectorAll('.answer.running .markdown')].at(-1)?.textContent.length > 20,
  );
  await page.getByRole('button', { name: 'Stop' }).click();
  await idle(page);
  const end = Date.now() + kLimitMs;
  while (!lines().at(-1)?.includes('gone=yes')) {
    assert.ok(Date.now() < end, `the server did not see the client leave: ${lines().at(-1)}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  assert.ok((await textOf(lastAnswer())).length > 20);
});

test('regenerate, edit, and a reload that brings it all back', async () => {
  const count = await answers().count();
  await lastAnswer().getByRole('button', { name: 'Regenerate' }).click();
  await page.waitForFunction(() => document.querySelector('.answer.running'));
  await page.getByRole('button', { name: 'Stop' }).click();
  await idle(page);
  assert.equal(await lastAnswer().locator('.position').textContent(), '2/2');
  await page.unroute('**/v1/chat/completions');
  await page.locator('.question').first().hover();
  await page.locator('.question').first().getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('Edit message').fill('What is the capital of France?');
  await page.getByLabel('Edit message').press('Enter');
  await page.waitForFunction((before) => document.querySelectorAll('.answer').length < before, count);
  await idle(page);
  const text = await textOf(lastAnswer());
  await page.reload();
  await lastAnswer().waitFor();
  assert.equal(await textOf(lastAnswer()), text);
});

test('dark colors', async () => {
  await page.emulateMedia({ colorScheme: 'dark' });
  const channels = (await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).match(/\d+/g);
  assert.ok(Math.max(...channels.slice(0, 3)) < 80);
  await shot('dark');
});

test('nobody complained', () => {
  assert.deepEqual(problems, []);
  assert.ok(
    lines().every((line) => line.includes('status=200')),
    lines().join('\n'),
  );
});
