// A small menu below a button.
import { h } from './dom';

export interface Item {
  label: string;
  run: () => void;
}

export function openMenu(anchor: HTMLElement, items: Item[]): void {
  const menu = h('div', { className: 'menu', role: 'menu', popover: 'auto' });
  for (const item of items) {
    menu.append(
      h(
        'button',
        {
          type: 'button',
          role: 'menuitem',
          tabIndex: -1,
          onclick: () => {
            menu.hidePopover();
            item.run();
          },
        },
        item.label,
      ),
    );
  }
  const buttons = Array.from(menu.querySelectorAll('button'));
  menu.onkeydown = (event) => {
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === 'Tab') menu.hidePopover();
    // It closes the menu and must not stop an answer as well.
    if (event.key === 'Escape') event.stopPropagation();
    if (next === undefined) return;
    event.preventDefault();
    buttons.at(next % buttons.length)?.focus();
  };
  menu.addEventListener('toggle', (event) => {
    if ((event as ToggleEvent).newState === 'closed') menu.remove();
  });
  document.body.append(menu);
  menu.showPopover();
  const box = anchor.getBoundingClientRect();
  const below = box.bottom + menu.offsetHeight + 8 < innerHeight;
  menu.style.top = `${below ? box.bottom + 4 : Math.max(8, box.top - menu.offsetHeight - 4)}px`;
  menu.style.left = `${Math.max(8, Math.min(box.left, innerWidth - menu.offsetWidth - 8))}px`;
  buttons[0]?.focus();
}
