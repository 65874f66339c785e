// What holds for the page as a whole: colors, the sidebar, drafts, and the settings that new conversations begin with.
import { readSettings } from './exchange';
import type { Settings } from './types';

export type Theme = 'system' | 'light' | 'dark';

/** Full or forbidden storage loses a preference, not the page. */
function write(name: string, value: string): void {
  try {
    if (value) localStorage.setItem(name, value);
    else localStorage.removeItem(name);
  } catch {
    // The preference lasts until the page is left.
  }
}

export function theme(): Theme {
  const value = localStorage.getItem('hearth.theme');
  return value === 'light' || value === 'dark' ? value : 'system';
}

export function setTheme(value: Theme): void {
  write('hearth.theme', value === 'system' ? '' : value);
  applyTheme();
}

export function applyTheme(): void {
  document.documentElement.dataset.theme = theme();
}

export function isDark(): boolean {
  return theme() === 'dark' || (theme() === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
}

export function sidebarFolded(): boolean {
  return localStorage.getItem('hearth.sidebar') === 'folded';
}

export function setSidebarFolded(folded: boolean): void {
  write('hearth.sidebar', folded ? 'folded' : '');
}

export function draft(conversation: string): string {
  return localStorage.getItem(`hearth.draft.${conversation}`) ?? '';
}

export function setDraft(conversation: string, text: string): void {
  write(`hearth.draft.${conversation}`, text);
}

export function defaultSettings(): Settings {
  try {
    return readSettings(JSON.parse(localStorage.getItem('hearth.settings') ?? '{}'));
  } catch {
    return readSettings({});
  }
}

export function setDefaultSettings(settings: Settings): void {
  write('hearth.settings', JSON.stringify(settings));
}
