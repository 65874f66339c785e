// Building elements without markup in strings.

type Child = Node | string | null | undefined | false;
type Props = Record<string, unknown>;

/** An element with properties (`onclick`, `className`, ...) or, for names with a dash and `role`, attributes. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props?: Props | null,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null) continue;
    if (name.includes('-') || name === 'role' || name === 'for' || name === 'popover') {
      element.setAttribute(name === 'for' ? 'for' : name, String(value));
    } else {
      (element as unknown as Props)[name] = value;
    }
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

const kSvg = 'http://www.w3.org/2000/svg';

// Strokes on a grid of 24 by 24.
const kIcons = {
  menu: 'M4 7h16M4 12h16M4 17h16',
  plus: 'M12 5v14M5 12h14',
  search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l4.5 4.5',
  send: 'M12 19V5M6 11l6-6 6 6',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M5 13l4.5 4.5L19 7',
  retry: 'M19.5 12a7.5 7.5 0 1 1-2.2-5.3L20 9.4M20 4.5v4.9h-4.9',
  edit: 'M4 20l1-4.5L16.5 4 20 7.5 8.5 19 4 20zM14 6.5l3.5 3.5',
  left: 'M14.5 6l-6 6 6 6',
  right: 'M9.5 6l6 6-6 6',
  down: 'M12 5v14M6 13l6 6 6-6',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
  settings: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2.5M12 19.5V22M2 12h2.5M19.5 12H22M4.9 4.9l1.8 1.8M17.3 17.3l1.8 1.8M19.1 4.9l-1.8 1.8M6.7 17.3l-1.8 1.8',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z',
  close: 'M6 6l12 12M18 6L6 18',
  tool: 'M14.5 6.5a4 4 0 0 1 5-3.9L17 5.2l1.8 1.8 2.6-2.5a4 4 0 0 1-5.3 4.9L8 17.6a2 2 0 1 1-2.8-2.8l8.2-8.1z',
} as const;

export type IconName = keyof typeof kIcons | 'stop';

export function icon(name: IconName): SVGSVGElement {
  const svg = document.createElementNS(kSvg, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(kSvg, 'path');
  if (name === 'stop') svg.classList.add('solid');
  path.setAttribute('d', name === 'stop' ? 'M7 7h10v10H7z' : kIcons[name]);
  svg.append(path);
  return svg;
}

/** A button that shows an icon alone; the label is its name and its tooltip. */
export function iconButton(name: IconName, label: string, onclick: () => void, className = ''): HTMLButtonElement {
  return h(
    'button',
    {
      type: 'button',
      className: `icon-button ${className}`.trim(),
      'aria-label': label,
      title: label,
      onclick,
    },
    icon(name),
  );
}

/** Gives an icon button another icon and name without losing the focus. */
export function setIcon(button: HTMLElement, name: IconName, label: string): void {
  button.replaceChildren(icon(name));
  button.setAttribute('aria-label', label);
  button.title = label;
}

/** Lets a text area be as high as its text; the largest height is the style sheet's. */
export function growWithText(area: HTMLTextAreaElement): void {
  if (CSS.supports('field-sizing', 'content')) return;
  area.style.height = 'auto';
  area.style.height = `${area.scrollHeight}px`;
}
