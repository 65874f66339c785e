// One message of the shown path.
import { copyFrom } from './clipboard';
import { growWithText, h, iconButton } from './dom';
import { count, rate, seconds } from './format';
import type { Generation } from './generation';
import { MarkdownView } from './markdown_view';
import { speak } from './notices';
import { ToolView } from './tool_view';
import type { Message, Stats } from './types';

export interface Actions {
  regenerate(message: Message): void;
  edit(message: Message, text: string): void;
  show(version: Message): void;
  sendResults(results: { id: string; text: string }[]): void;
}

/** What a message does not know by itself. */
export interface Surroundings {
  versions: Message[];
  /** The generation that writes this message. */
  generation?: Generation;
  /** Some answer of the conversation is being written: nothing can be changed. */
  busy: boolean;
  /** Results by the id of their call. */
  results: Map<string, string>;
  /** Ids of calls that wait for a result. */
  openCalls: string[];
}

export interface MessageView {
  readonly element: HTMLElement;
  readonly message: Message;
  update(around: Surroundings): void;
  /** Brings up to date what changes with time alone: seconds waited. */
  tick?(): void;
}

export function messageView(message: Message, actions: Actions): MessageView {
  return message.role === 'user' ? new QuestionView(message, actions) : new AnswerView(message, actions);
}

/** "‹ 2/3 ›" */
class Versions {
  readonly element: HTMLElement;
  private readonly position = h('span', { className: 'position' });
  private readonly back = iconButton('left', 'Previous version', () => this.go(-1));
  private readonly forth = iconButton('right', 'Next version', () => this.go(1));
  private versions: Message[] = [];

  constructor(
    private readonly message: Message,
    private readonly show: (version: Message) => void,
  ) {
    this.element = h('span', { className: 'versions' }, this.back, this.position, this.forth);
  }

  set({ versions, busy }: Surroundings): void {
    this.versions = versions;
    const at = versions.indexOf(this.message);
    this.element.hidden = versions.length < 2;
    this.position.textContent = `${at + 1}/${versions.length}`;
    this.back.disabled = busy || at <= 0;
    this.forth.disabled = busy || at >= versions.length - 1;
  }

  private go(step: number): void {
    const version = this.versions[this.versions.indexOf(this.message) + step];
    if (version) this.show(version);
  }
}

class QuestionView implements MessageView {
  readonly element: HTMLElement;
  private readonly versions: Versions;
  private readonly bubble: HTMLElement;
  private readonly editButton = iconButton('edit', 'Edit', () => this.edit());

  constructor(
    readonly message: Message,
    private readonly actions: Actions,
  ) {
    this.versions = new Versions(message, actions.show);
    this.bubble = h('div', { className: 'bubble', dir: 'auto' }, message.content);
    const copy = iconButton('copy', 'Copy', () => void copyFrom(copy, message.content, 'Copy'));
    this.element = h(
      'article',
      { className: 'message question', 'aria-label': 'You' },
      this.bubble,
      h('footer', null, this.versions.element, copy, this.editButton),
    );
  }

  update(around: Surroundings): void {
    this.versions.set(around);
    this.editButton.disabled = around.busy;
  }

  edit(): void {
    const area = h('textarea', {
      value: this.message.content,
      'aria-label': 'Edit message',
      rows: 2,
      oninput: () => growWithText(area),
    });
    const close = () => {
      editor.remove();
      this.element.classList.remove('editing');
      this.editButton.focus();
    };
    const send = () => {
      if (!area.value.trim()) return;
      close();
      this.actions.edit(this.message, area.value);
    };
    const editor = h(
      'form',
      {
        className: 'editor',
        onsubmit: (event: Event) => {
          event.preventDefault();
          send();
        },
      },
      area,
      h(
        'div',
        { className: 'buttons' },
        h('button', { type: 'button', className: 'button', onclick: close }, 'Cancel'),
        h('button', { type: 'submit', className: 'button primary' }, 'Send'),
      ),
    );
    area.onkeydown = (event) => {
      if (event.isComposing) return;
      if (event.key === 'Enter' && !event.shiftKey) {
        event.preventDefault();
        send();
      } else if (event.key === 'Escape') {
        event.stopPropagation();
        close();
      }
    };
    this.element.classList.add('editing');
    this.element.prepend(editor);
    growWithText(area);
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
  }
}

class AnswerView implements MessageView {
  readonly element: HTMLElement;
  private readonly thoughts = new MarkdownView();
  private readonly thinking: HTMLDetailsElement;
  private readonly thinkingLabel = h('summary');
  private readonly text = new MarkdownView();
  private readonly tools = h('div', { className: 'tools' });
  private readonly toolViews: ToolView[] = [];
  private readonly sendResults = h(
    'button',
    {
      type: 'button',
      className: 'button primary',
      onclick: () => this.giveResults(),
    },
    'Send results',
  );
  private readonly state = h('div', { className: 'state-line' });
  private readonly versions: Versions;
  private readonly retry = iconButton('retry', 'Regenerate', () => this.actions.regenerate(this.message));
  private readonly copy = iconButton('copy', 'Copy', () => void copyFrom(this.copy, this.message.content, 'Copy'));
  private readonly numbers = h('span', { className: 'numbers' });
  private around: Surroundings | null = null;

  constructor(
    readonly message: Message,
    private readonly actions: Actions,
  ) {
    this.versions = new Versions(message, actions.show);
    this.thinking = h(
      'details',
      {
        className: 'thinking',
        hidden: true,
        ontoggle: () => this.renderThoughts(),
      },
      this.thinkingLabel,
      this.thoughts.element,
    );
    this.text.element.dir = 'auto';
    this.element = h(
      'article',
      { className: 'message answer', 'aria-label': 'Answer' },
      this.thinking,
      this.text.element,
      this.tools,
      this.state,
      h('footer', null, this.versions.element, this.copy, this.retry, this.numbers),
    );
  }

  update(around: Surroundings): void {
    const running = around.generation !== undefined;
    // Only an answer that was seen to grow is read aloud, not an old one that is opened.
    this.text.onSettled = this.around?.generation ? speak : () => undefined;
    this.around = around;
    const { message } = this;
    this.element.classList.toggle('running', running);
    this.element.setAttribute('aria-busy', String(running));
    this.thinking.hidden = !message.reasoning;
    this.renderThoughts();
    this.text.set(message.content, !running);
    this.updateTools(around, running);
    this.versions.set(around);
    this.copy.hidden = running || !message.content;
    // A failure has its own button.
    this.retry.hidden = running || (message.ending === 'failed' && !message.content);
    this.retry.disabled = around.busy;
    this.numbers.textContent = numbersOf(message.stats);
    this.numbers.title = running ? '' : (message.model ?? '');
    this.updateState(running);
    this.tick();
  }

  tick(): void {
    const { message } = this;
    const generation = this.around?.generation;
    if (generation && !generation.answering) {
      const waited = generation.waitedSeconds;
      const share = generation.read === undefined ? '' : ` ${Math.floor(generation.read * 100)} % ·`;
      this.state.textContent = waited < 1 ? 'Reading…' : `Reading…${share} ${seconds(waited)}`;
    }
    if (!message.reasoning) return;
    const stillThinking = generation !== undefined && message.thinkingMs === undefined;
    this.thinkingLabel.textContent = stillThinking
      ? `Thinking… ${seconds(generation.writingSeconds)}`
      : message.thinkingMs === undefined
        ? 'Thoughts'
        : `Thought for ${message.thinkingMs < 1000 ? 'a moment' : seconds(message.thinkingMs / 1000)}`;
    this.thinking.classList.toggle('live', stillThinking);
  }

  private renderThoughts(): void {
    const { message } = this;
    if (!this.thinking.open || !message.reasoning) return;
    this.thoughts.set(message.reasoning, !this.around?.generation || message.thinkingMs !== undefined);
  }

  private updateTools(around: Surroundings, running: boolean): void {
    const calls = this.message.toolCalls ?? [];
    for (const [index, call] of calls.entries()) {
      const view = (this.toolViews[index] ??= this.addTool());
      const last = index === calls.length - 1;
      view.set(call, around.results.get(call.id), running && last, !running && around.openCalls.includes(call.id));
    }
    const open = !running && around.openCalls.length > 0;
    if (open) this.tools.append(this.sendResults);
    else this.sendResults.remove();
  }

  private addTool(): ToolView {
    const view = new ToolView();
    this.tools.append(view.element);
    return view;
  }

  private giveResults(): void {
    const results: { id: string; text: string }[] = [];
    for (const [index, call] of (this.message.toolCalls ?? []).entries()) {
      if (this.around?.openCalls.includes(call.id))
        results.push({ id: call.id, text: this.toolViews[index]!.field.value });
    }
    this.actions.sendResults(results);
  }

  /** What stands below the text: waiting, a failure with the way out, or why the answer is not longer. */
  private updateState(running: boolean): void {
    const { message } = this;
    const { ending } = message;
    this.state.className = 'state-line';
    this.state.removeAttribute('role');
    if (running) {
      this.state.classList.toggle('waiting', !this.around!.generation!.answering);
      if (this.around!.generation!.answering) this.state.textContent = '';
      return;
    }
    const broken = ending === 'failed' || ending === 'broken';
    // One that is still running in the database was left behind by a browser that ended at once.
    const interrupted = ending === 'interrupted' || ending === 'running';
    if (broken) {
      this.state.classList.add('error');
      this.state.setAttribute('role', 'alert');
      this.state.replaceChildren(
        h('span', null, message.error || 'The answer broke off.'),
        h(
          'button',
          {
            type: 'button',
            className: 'button',
            disabled: this.around!.busy,
            onclick: () => this.actions.regenerate(message),
          },
          'Try again',
        ),
      );
    } else if (ending === 'length') {
      this.state.textContent = 'The answer ended at the limit of tokens.';
    } else if (ending === 'stopped' || interrupted) {
      this.state.textContent = interrupted ? 'The answer was interrupted.' : 'Stopped.';
    } else {
      this.state.textContent = '';
    }
  }
}

function numbersOf(stats: Stats | undefined): string {
  const parts: string[] = [];
  if (stats?.tokensPerSecond) parts.push(rate(stats.tokensPerSecond));
  if (stats?.answerTokens) parts.push(`${count(stats.answerTokens)} ${stats.answerTokens === 1 ? 'token' : 'tokens'}`);
  if (stats?.cachedTokens) parts.push(`${count(stats.cachedTokens)} cached`);
  return parts.join(' · ');
}
