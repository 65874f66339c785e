// Bundles the chat page into one file without outside references: dist/index.html.
//
// Script and style are inline and named by their hashes in the policy, so that no other script or style can run,
// even if an answer of the model slipped through the sanitizer.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const kLimitBytes = 400 * 1024;

async function bundle(entry) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: ['es2022', 'chrome123', 'firefox121', 'safari17.5'],
    legalComments: 'none',
    charset: 'utf8',
    outdir: 'dist',
  });
  return result.outputFiles[0].text.trim();
}

function hash(text) {
  return `'sha256-${createHash('sha256').update(text, 'utf8').digest('base64')}'`;
}

// After "<!--" an HTML parser takes "<script" for a nested element and misses the end of ours. In strings and regular
// expressions, the only places where it occurs, "\x21" means the same as "!".
const script = (await bundle('src/main.ts')).replaceAll('<!--', '<\\x21--');
const style = await bundle('styles/page.css');
if (/<\/(script|style)/i.test(script + style)) {
  throw new Error('The bundle has a sequence that would end the inline element early.');
}

const policy = [
  "default-src 'none'",
  `script-src ${hash(script)}`,
  `style-src ${hash(style)}`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types dompurify',
].join('; ');

const page = readFileSync(join(here, 'src/index.html'), 'utf8')
  .replace('{{policy}}', () => policy)
  .replace('{{style}}', () => style)
  .replace('{{script}}', () => script);
const size = Buffer.byteLength(page);
if (size > kLimitBytes) throw new Error(`The page has ${size} bytes; it must stay below ${kLimitBytes}.`);

mkdirSync(join(here, 'dist'), { recursive: true });
writeFileSync(join(here, 'dist/index.html'), page);
console.log(`web/dist/index.html: ${(size / 1024).toFixed(0)} KiB`);
