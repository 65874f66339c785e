// The list of conversations: new, search, rename, export, delete.
import type { Chats } from './chats';
import { h, icon, iconButton } from './dom';
import { download, fileName, toJson, toMarkdown } from './exchange';
import { dayGroup } from './format';
import { openMenu } from './menu';
import { notify } from './notices';
import type { Head } from './types';

const kSearchAfterMs = 120;
const kShownHeads = 200;

export class Sidebar {
  readonly element: HTMLElement;
  readonly search = h('input', {
    type: 'search',
    placeholder: 'Search',
    'aria-label': 'Search conversations',
    autocomplete: 'off',
    oninput: () => this.searchSoon(),
  });
  private readonly list = h('div', { className: 'list' });
  private shown = kShownHeads;
  private timer = 0;
  private abort = new AbortController();

  /** `onNew` shows a new conversation, `onChosen` is called when one of the list was chosen. */
  constructor(
    private readonly chats: Chats,
    onNew: () => void,
    private readonly onChosen: () => void,
    onClose: () => void,
  ) {
    this.element = h(
      'nav',
      { className: 'sidebar', id: 'sidebar', 'aria-label': 'Conversations' },
      h(
        'div',
        { className: 'top' },
        h('span', { className: 'brand' }, 'Hearth'),
        iconButton('close', 'Close the list', onClose, 'close'),
      ),
      h('button', { type: 'button', className: 'button new', onclick: onNew }, icon('plus'), 'New conversation'),
      this.search,
      this.list,
    );
    this.search.onkeydown = (event) => {
      const first = this.list.querySelector('a');
      if (event.key === 'Enter' && first) first.click();
      if (event.key === 'ArrowDown' && first) {
        event.preventDefault();
        first.focus();
      }
      if (event.key === 'Escape' && this.search.value) {
        event.stopPropagation();
        this.search.value = '';
        this.update();
      }
    };
    this.list.onkeydown = (event) => this.key(event);
  }

  update(): void {
    if (this.search.value.trim()) {
      this.searchSoon();
      return;
    }
    const rows: HTMLElement[] = [];
    let group = '';
    for (const head of this.chats.heads.slice(0, this.shown)) {
      const next = dayGroup(head.updated);
      if (next !== group) rows.push(h('h2', null, (group = next)));
      rows.push(this.row(head, ''));
    }
    if (this.chats.heads.length > this.shown) {
      rows.push(
        h(
          'button',
          {
            type: 'button',
            className: 'button',
            onclick: () => {
              this.shown += kShownHeads;
              this.update();
            },
          },
          'Show more',
        ),
      );
    }
    if (!rows.length)
      rows.push(h('p', { className: 'empty' }, 'Conversations are kept in this browser and appear here.'));
    this.replace(rows);
  }

  /** Puts rows in place of the old ones, with the focus where it was. A name being typed is not taken away. */
  private replace(rows: HTMLElement[]): void {
    if (this.list.querySelector('input')) return;
    const focused = this.list.contains(document.activeElement) ? document.activeElement!.getAttribute('href') : null;
    this.list.replaceChildren(...rows);
    if (focused) this.list.querySelector<HTMLElement>(`a[href="${CSS.escape(focused)}"]`)?.focus();
  }

  private searchSoon(): void {
    clearTimeout(this.timer);
    this.abort.abort();
    if (!this.search.value.trim()) return this.update();
    this.abort = new AbortController();
    const { signal } = this.abort;
    this.timer = window.setTimeout(async () => {
      const found = await this.chats.search(this.search.value.trim(), signal);
      if (signal.aborted) return;
      const rows = found.slice(0, kShownHeads).map(({ head, passage }) => this.row(head, passage));
      this.replace(rows.length ? rows : [h('p', { className: 'empty' }, 'Nothing found.')]);
    }, kSearchAfterMs);
  }

  private row(head: Head, passage: string): HTMLElement {
    const current = head.id === this.chats.current.id;
    const link = h(
      'a',
      {
        href: `#${head.id}`,
        title: head.title,
        'aria-current': current ? 'page' : undefined,
        onclick: this.onChosen,
      },
      h('span', { className: 'title' }, head.title),
      passage ? h('span', { className: 'passage' }, passage) : null,
    );
    const more = iconButton(
      'more',
      `More for ${head.title}`,
      () =>
        openMenu(more, [
          { label: 'Rename', run: () => this.rename(row, head) },
          { label: 'Export as Markdown', run: () => void this.export(head, 'md') },
          { label: 'Export as JSON', run: () => void this.export(head, 'json') },
          { label: 'Delete', run: () => void this.remove(head) },
        ]),
      'more',
    );
    more.setAttribute('aria-haspopup', 'menu');
    const row = h('div', { className: 'row' }, link, more);
    row.dataset.id = head.id;
    row.classList.toggle('running', this.chats.isRunning(head.id));
    return row;
  }

  private key(event: KeyboardEvent): void {
    const links = Array.from(this.list.querySelectorAll<HTMLElement>('a'));
    const at = links.indexOf(document.activeElement as HTMLElement);
    const row = links[at]?.closest<HTMLElement>('.row');
    const head = this.chats.heads.find(({ id }) => id === row?.dataset.id);
    if (!row || !head) return;
    if (event.key === 'ArrowDown') links[at + 1]?.focus();
    else if (event.key === 'ArrowUp') (links[at - 1] ?? this.search).focus();
    else if (event.key === 'F2') this.rename(row, head);
    else if (event.key === 'Delete') void this.remove(head);
    else return;
    event.preventDefault();
  }

  private rename(row: HTMLElement, head: Head): void {
    const input = h('input', { type: 'text', value: head.title, maxLength: 200, 'aria-label': 'Title' });
    let open = true;
    const close = async (keep: boolean) => {
      if (!open) return;
      open = false;
      input.remove();
      if (keep && input.value.trim() !== head.title) await this.chats.rename(head.id, input.value);
      this.update();
      this.list.querySelector<HTMLElement>(`a[href="#${head.id}"]`)?.focus();
    };
    input.onkeydown = (event) => {
      event.stopPropagation();
      if (event.key === 'Enter' && !event.isComposing) void close(true);
      if (event.key === 'Escape') void close(false);
    };
    input.onblur = () => void close(true);
    row.replaceChildren(input);
    input.select();
  }

  private async export(head: Head, extension: 'md' | 'json'): Promise<void> {
    const conversation = await this.chats.load(head.id);
    if (!conversation) return;
    if (extension === 'md') download(fileName(head.title, 'md'), 'text/markdown', toMarkdown(conversation));
    else download(fileName(head.title, 'json'), 'application/json', toJson([conversation]));
  }

  private async remove(head: Head): Promise<void> {
    const wasCurrent = head.id === this.chats.current.id;
    const undo = await this.chats.remove(head.id);
    if (wasCurrent) location.hash = '';
    notify(`“${head.title}” was deleted.`, {
      label: 'Undo',
      run: () =>
        void undo().then(() => {
          if (wasCurrent) location.hash = head.id;
        }),
    });
  }
}
