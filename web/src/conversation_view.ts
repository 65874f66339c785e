// The messages of the shown path, and where they are scrolled to.
import type { Chats } from './chats';
import { h, iconButton } from './dom';
import { openCalls } from './messages';
import { type Actions, type MessageView, messageView, type Surroundings } from './message_view';
import { speak } from './notices';
import { shownPath, versionsOf } from './tree';
import type { Message } from './types';

/** A growing answer is rendered at most this often, and takes at most a quarter of the time. */
const kRenderEveryMs = 50;
const kRenderShare = 4;
/** Messages shown at first; older ones appear on demand. */
const kShownMessages = 60;
/** Closer to the end than this counts as being there. */
const kEndPx = 32;

export class ConversationView {
  readonly element: HTMLElement;
  /** The growing answer was brought up to date. */
  onRendered: () => void = () => undefined;
  private readonly list = h('div', { className: 'messages' });
  private readonly earlier = h(
    'button',
    {
      type: 'button',
      className: 'button earlier',
      hidden: true,
      onclick: () => this.showEarlier(),
    },
    'Show earlier messages',
  );
  private readonly toEnd = iconButton('down', 'To the latest message', () => this.scrollToEnd(), 'to-end');
  private readonly welcome = h('div', { className: 'welcome' });
  private views: MessageView[] = [];
  private shownId = '';
  private hiddenCount = 0;
  private growing = false;
  private following = true;
  private lastTop = 0;
  private timer = 0;
  private lastCostMs = 0;

  constructor(
    private readonly chats: Chats,
    private readonly actions: Actions,
  ) {
    this.element = h(
      'div',
      { className: 'scroll', tabIndex: -1 },
      h('div', { className: 'column' }, this.welcome, this.earlier, this.list),
      h('div', { className: 'to-end-place' }, this.toEnd),
    );
    this.toEnd.hidden = true;
    this.element.onscroll = () => this.noticeScroll();
    // Pictures of text change their height when fonts arrive or the window changes; the end stays in view.
    new ResizeObserver(() => this.keepEnd()).observe(this.list);
    new ResizeObserver(() => this.keepEnd()).observe(this.element);
    setInterval(() => {
      if (this.chats.generation) this.views.at(-1)?.tick?.();
    }, 1000);
  }

  setWelcome(...children: Node[]): void {
    this.welcome.replaceChildren(...children);
  }

  /** Shows the current path; messages that were already shown stay as they are. */
  showPath(): void {
    clearTimeout(this.timer);
    this.timer = 0;
    const { current, generation } = this.chats;
    const switched = current.id !== this.shownId;
    const all = shownPath(current);
    if (switched) {
      this.shownId = current.id;
      this.views = [];
      this.list.replaceChildren();
      this.hiddenCount = Math.max(0, all.length - kShownMessages);
    }
    this.hiddenCount = Math.min(this.hiddenCount, all.length);
    const path = all.slice(this.hiddenCount).filter((message) => message.role !== 'tool');
    let same = 0;
    while (same < path.length && this.views[same]?.message === path[same]) ++same;
    for (const view of this.views.splice(same)) view.element.remove();
    for (const message of path.slice(same)) {
      const view = messageView(message, this.actions);
      this.views.push(view);
      this.list.append(view.element);
    }
    const around = this.surroundings(all);
    for (const view of this.views) view.update(around(view.message));
    this.earlier.hidden = this.hiddenCount === 0;
    this.welcome.hidden = all.length > 0;
    if (switched || generation) this.scrollToEnd();
    else this.keepEnd();
    if (!switched && this.growing && !generation) speak('Answer complete.');
    this.growing = generation !== undefined;
  }

  /** The last answer has grown. */
  answerGrew(): void {
    this.timer ||= window.setTimeout(
      () => {
        this.timer = 0;
        const before = performance.now();
        const view = this.views.at(-1);
        if (view) view.update(this.surroundings(shownPath(this.chats.current))(view.message));
        this.keepEnd();
        this.onRendered();
        this.lastCostMs = performance.now() - before;
      },
      Math.max(kRenderEveryMs, this.lastCostMs * kRenderShare),
    );
  }

  /** Opens the last question for editing. */
  editLast(): void {
    const view = this.views.findLast(({ message }) => message.role === 'user');
    view?.element.querySelector<HTMLButtonElement>('[aria-label="Edit"]')?.click();
  }

  private surroundings(path: Message[]): (message: Message) => Surroundings {
    const { current, generation } = this.chats;
    const results = new Map<string, string>();
    for (const message of path) if (message.role === 'tool') results.set(message.toolCallId ?? '', message.content);
    const open = generation ? null : openCalls(current, path);
    return (message) => ({
      versions: versionsOf(current, message),
      generation: generation?.message === message ? generation : undefined,
      busy: generation !== undefined,
      results,
      openCalls: open?.call === message ? open.ids : [],
    });
  }

  private showEarlier(): void {
    const fromEnd = this.element.scrollHeight - this.element.scrollTop;
    this.hiddenCount = Math.max(0, this.hiddenCount - kShownMessages);
    this.views = [];
    this.list.replaceChildren();
    this.following = false;
    this.showPath();
    this.element.scrollTop = this.element.scrollHeight - fromEnd;
  }

  private get atEnd(): boolean {
    const { scrollHeight, scrollTop, clientHeight } = this.element;
    return scrollHeight - scrollTop - clientHeight < kEndPx;
  }

  private noticeScroll(): void {
    const top = this.element.scrollTop;
    // Only moving up leaves the end: content that grows below does not move anything.
    if (this.atEnd) this.following = true;
    else if (top < this.lastTop - 1) this.following = false;
    this.lastTop = top;
    this.toEnd.hidden = this.atEnd || this.following;
  }

  private keepEnd(): void {
    if (this.following) this.scrollToEnd();
    else this.toEnd.hidden = this.atEnd;
  }

  private scrollToEnd(): void {
    this.following = true;
    this.element.scrollTop = this.element.scrollHeight;
    this.lastTop = this.element.scrollTop;
    this.toEnd.hidden = true;
  }
}
