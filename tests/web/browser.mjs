// The browser of the tests. HEARTH_CHROMIUM names another one.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../web/package.json', import.meta.url));
const { chromium } = require('playwright-core');
const kBrowsers = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export function launchBrowser() {
  const executablePath = process.env.HEARTH_CHROMIUM ?? kBrowsers.find((path) => existsSync(path));
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
}
