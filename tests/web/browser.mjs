// The browser of the tests. HEARTH_CHROMIUM names another one, HEARTH_SHOTS a folder for pictures of what they see.
import { existsSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(new URL('../../web/package.json', import.meta.url));
const { chromium } = require('playwright-core');
const kBrowsers = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export function launchBrowser() {
  const executablePath = process.env.HEARTH_CHROMIUM ?? kBrowsers.find((path) => existsSync(path));
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
}

export async function takeShot(page, name) {
  if (!process.env.HEARTH_SHOTS) return;
  mkdirSync(process.env.HEARTH_SHOTS, { recursive: true });
  await page.waitForTimeout(150);
  await page.screenshot({ path: join(process.env.HEARTH_SHOTS, `${name}.png`) });
}

/** No answer is on its way. */
export const idle = (page) =>
  page.waitForFunction(
    () => !document.querySelector('.answer.running') && !document.querySelector('[aria-label="Stop"]'),
  );
