// Copying text, also on pages without TLS, where browsers withhold their clipboard interface.
import { h, setIcon } from './dom';

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const focused = document.activeElement;
    const area = h('textarea', { value: text, className: 'sr-only' });
    // Inside an open dialog everything outside of it cannot take the selection.
    (document.querySelector('dialog[open]') ?? document.body).append(area);
    area.select();
    const copied = document.execCommand('copy');
    area.remove();
    if (focused instanceof HTMLElement) focused.focus();
    return copied;
  }
}

/** Copies, and shows for a moment on the button that it worked. */
export async function copyFrom(button: HTMLElement, text: string, label: string): Promise<void> {
  if (!(await copyText(text))) return;
  setIcon(button, 'check', 'Copied');
  setTimeout(() => setIcon(button, 'copy', label), 1500);
}
