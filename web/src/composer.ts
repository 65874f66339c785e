// Where one types: the field, send and stop, and below it the model, the use of the context and the speed.
import type { Chats } from './chats';
import { growWithText, h, iconButton, setIcon } from './dom';
import { count, rate } from './format';
import * as preferences from './preferences';
import type { Server } from './server';
import { shownPath } from './tree';

export class Composer {
  readonly element: HTMLFormElement;
  onEditLast: () => void = () => undefined;
  private readonly field = h('textarea', {
    rows: 1,
    id: 'message',
    placeholder: 'Write a message',
    'aria-label': 'Message',
    enterKeyHint: 'send',
    dir: 'auto',
    oninput: () => this.typed(),
  });
  private readonly button = iconButton('send', 'Send', () => this.press(), 'send');
  private readonly model = h('select', { 'aria-label': 'Model', onchange: () => this.chooseModel() });
  private readonly modelName = h('span', { className: 'model-name' });
  private readonly bar = h('span', { className: 'fill' });
  private readonly use = h('span');
  private readonly meter = h('span', { className: 'meter' }, h('span', { className: 'bar' }, this.bar), this.use);
  private readonly speed = h('span', { className: 'speed' });
  private draftOf = '';

  constructor(
    private readonly chats: Chats,
    private readonly server: Server,
  ) {
    this.field.onkeydown = (event) => this.key(event);
    this.element = h(
      'form',
      { className: 'composer', onsubmit: (event: Event) => event.preventDefault() },
      h('div', { className: 'box' }, this.field, this.button),
      h('div', { className: 'facts' }, this.modelName, this.model, this.meter, this.speed),
    );
  }

  focus(): void {
    this.field.focus();
  }

  /** Takes the focus where that does not bring a keyboard onto the screen. */
  invite(): void {
    if (matchMedia('(hover: hover)').matches) this.field.focus();
  }

  /** Another conversation, another path, or another state of the server. */
  update(): void {
    const { current, generation } = this.chats;
    if (this.draftOf !== current.id) {
      this.draftOf = current.id;
      this.field.value = preferences.draft(this.draftName);
      growWithText(this.field);
    }
    const running = generation !== undefined;
    setIcon(this.button, running ? 'stop' : 'send', running ? 'Stop' : 'Send');
    this.button.disabled = !running && !this.field.value.trim();
    this.updateModels();
    this.updateNumbers();
  }

  updateNumbers(): void {
    const { current, generation } = this.chats;
    const last = shownPath(current).findLast((message) => message.stats?.promptTokens !== undefined);
    const tokens =
      (last?.stats?.promptTokens ?? 0) +
      (last?.stats?.answerTokens ?? 0) +
      (generation && generation.message !== last ? (generation.message.stats?.answerTokens ?? 0) : 0);
    const limit = this.server.contextTokens(current.settings.model);
    this.meter.hidden = !tokens && !limit;
    this.meter.classList.toggle('full', limit !== undefined && tokens > limit * 0.85);
    this.bar.parentElement!.hidden = !limit;
    this.bar.style.width = limit ? `${Math.min(100, (100 * tokens) / limit)}%` : '0';
    this.use.textContent = limit ? `${count(tokens)} / ${count(limit)}` : `${count(tokens)} tokens`;
    this.meter.title = limit
      ? `Context: ${count(tokens)} of ${count(limit)} tokens used`
      : `Context: ${count(tokens)} tokens used`;
    const stats = generation?.message.stats;
    this.speed.textContent = stats?.tokensPerSecond ? rate(stats.tokensPerSecond) : '';
  }

  private updateModels(): void {
    const { models } = this.server;
    const chosen = this.server.modelFor(this.chats.current.settings.model);
    this.modelName.hidden = models.length > 1;
    this.model.hidden = models.length < 2;
    this.modelName.textContent = !this.server.reachable
      ? 'The server cannot be reached'
      : chosen?.loading
        ? `${chosen.id} is being loaded…`
        : (chosen?.id ?? '');
    this.modelName.title = this.modelName.textContent;
    this.modelName.classList.toggle('error', !this.server.reachable);
    if (models.length < 2) return;
    this.model.replaceChildren(...models.map(({ id }) => h('option', { value: id }, id)));
    this.model.value = chosen?.id ?? '';
  }

  private chooseModel(): void {
    this.chats.current.settings.model = this.model.value;
    void this.chats.save(this.chats.current);
  }

  /** A new conversation gets its id only for this page; its draft must survive a reload. */
  private get draftName(): string {
    return this.chats.current.messages.length ? this.chats.current.id : 'new';
  }

  private typed(): void {
    growWithText(this.field);
    this.button.disabled = !this.chats.generation && !this.field.value.trim();
    preferences.setDraft(this.draftName, this.field.value);
  }

  private press(): void {
    if (this.chats.generation) this.chats.stop();
    else this.send();
    this.invite();
  }

  private send(): void {
    const text = this.field.value;
    if (!text.trim() || this.chats.generation) return;
    preferences.setDraft(this.draftName, '');
    this.field.value = '';
    growWithText(this.field);
    this.chats.send(text);
  }

  private key(event: KeyboardEvent): void {
    // While an input method composes a character, Enter chooses among its candidates.
    if (event.isComposing) return;
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      this.send();
    } else if (event.key === 'ArrowUp' && !this.field.value && !this.chats.generation) {
      event.preventDefault();
      this.onEditLast();
    }
  }
}
