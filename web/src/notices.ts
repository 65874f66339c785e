// Short messages at the lower edge, and the words for readers of the screen.
import { h } from './dom';

const kShownMs = 8000;

const area = h('div', { className: 'notices', role: 'status' });
const spoken = h('div', { className: 'sr-only', 'aria-live': 'polite' });

export function noticeAreas(): HTMLElement[] {
  return [area, spoken];
}

export function notify(text: string, action?: { label: string; run: () => void }): void {
  // What fails at every write is said once.
  if (area.lastElementChild?.firstElementChild?.textContent === text && !action) return;
  const notice = h('div', { className: 'notice' }, h('span', null, text));
  const timer = setTimeout(() => notice.remove(), kShownMs);
  if (action) {
    notice.append(
      h(
        'button',
        {
          type: 'button',
          className: 'text-button',
          onclick: () => {
            clearTimeout(timer);
            notice.remove();
            action.run();
          },
        },
        action.label,
      ),
    );
  }
  // More than three would cover the page.
  while (area.childElementCount >= 3) area.firstElementChild!.remove();
  area.append(notice);
}

/** Lets a screen reader say `text` when it is done with what it says now. */
export function speak(text: string): void {
  const short = text.length > 1000 ? `${text.slice(0, 1000)}…` : text;
  spoken.append(h('p', null, short));
  while (spoken.childElementCount > 5) spoken.firstElementChild!.remove();
}
