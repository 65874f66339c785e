// The settings of the conversation and of the page.
import { apiKey, setApiKey } from './api';
import type { Chats } from './chats';
import { growWithText, h, iconButton } from './dom';
import { download, fromJson, toJson } from './exchange';
import { parseTools } from './messages';
import { notify } from './notices';
import * as preferences from './preferences';
import type { Server } from './server';
import type { Sampling } from './types';

type NumberName = Exclude<keyof Sampling, 'thinking'>;

const kNumbers: { name: NumberName; label: string; hint: string; min: number; max: number; step: number }[] = [
  {
    name: 'temperature',
    label: 'Temperature',
    hint: '0 always takes the most likely token',
    min: 0,
    max: 5,
    step: 0.05,
  },
  { name: 'top_p', label: 'Top P', hint: 'Likeliest tokens up to this share', min: 0, max: 1, step: 0.01 },
  { name: 'top_k', label: 'Top K', hint: 'So many of the likeliest tokens', min: 0, max: 100000, step: 1 },
  { name: 'min_p', label: 'Min P', hint: 'At least this share of the likeliest', min: 0, max: 1, step: 0.01 },
  { name: 'max_tokens', label: 'Longest answer', hint: 'In tokens', min: 1, max: 10000000, step: 1 },
];

const kKeys: [string, string][] = [
  ['Enter', 'Send'],
  ['Shift Enter', 'New line'],
  ['Esc', 'Stop the answer'],
  ['↑', 'Edit the last message, in an empty field'],
  ['Ctrl K', 'Search conversations'],
  ['Ctrl Shift O', 'New conversation'],
  ['F2, Del', 'Rename or delete, in the list'],
];

export class SettingsDialog {
  readonly element: HTMLDialogElement;
  private readonly system = h('textarea', {
    rows: 4,
    placeholder: 'How the model should behave',
    oninput: () => {
      growWithText(this.system);
      this.settings.system = this.system.value;
      this.changed();
    },
  });
  private readonly numbers = new Map<NumberName, HTMLInputElement>();
  private readonly thinking = h(
    'select',
    {
      onchange: () => {
        const { value } = this.thinking;
        if (value) this.settings.sampling.thinking = value === 'on';
        else delete this.settings.sampling.thinking;
        this.changed();
      },
    },
    h('option', { value: '' }, 'Default'),
    h('option', { value: 'on' }, 'On'),
    h('option', { value: 'off' }, 'Off'),
  );
  private readonly tools = h('textarea', {
    rows: 4,
    spellcheck: false,
    className: 'code-field',
    placeholder: '[{"name": "weather", "parameters": {…}}]',
    oninput: () => this.toolsTyped(),
  });
  private readonly toolsProblem = h('span', { className: 'problem', role: 'status' });
  private readonly toolsNote = h('span', { className: 'problem', hidden: true }, 'This model was not made for tools.');
  private readonly theme = h(
    'select',
    {
      onchange: () => {
        preferences.setTheme(this.theme.value as preferences.Theme);
        this.onTheme();
      },
    },
    h('option', { value: 'system' }, 'System'),
    h('option', { value: 'light' }, 'Light'),
    h('option', { value: 'dark' }, 'Dark'),
  );
  private readonly key = h('input', {
    type: 'password',
    autocomplete: 'off',
    placeholder: 'None',
    onchange: () => {
      setApiKey(this.key.value.trim());
      void this.server.refresh();
    },
  });
  private readonly file = h('input', {
    type: 'file',
    accept: '.json,application/json',
    hidden: true,
    onchange: () => void this.import(),
  });
  onTheme: () => void = () => undefined;

  constructor(
    private readonly chats: Chats,
    private readonly server: Server,
  ) {
    const close = iconButton('close', 'Close', () => this.element.close());
    this.element = h(
      'dialog',
      { className: 'drawer', 'aria-labelledby': 'settings-title' },
      h('div', { className: 'drawer-top' }, h('h1', { id: 'settings-title' }, 'Settings'), close),
      h(
        'section',
        null,
        h('h2', null, 'This conversation'),
        h('label', { className: 'field' }, 'System prompt', this.system),
        h(
          'div',
          { className: 'grid' },
          ...kNumbers.map((number) => this.numberField(number)),
          h('label', { className: 'field' }, 'Thinking', this.thinking),
        ),
        h(
          'details',
          null,
          h('summary', null, 'Tools'),
          h('label', { className: 'field' }, 'Functions that the model may call, as a JSON array', this.tools),
          this.toolsNote,
          this.toolsProblem,
        ),
        h(
          'div',
          { className: 'buttons' },
          h('button', { type: 'button', className: 'button', onclick: () => this.reset() }, 'Reset'),
          h('button', { type: 'button', className: 'button', onclick: () => this.keep() }, 'Use for new conversations'),
        ),
      ),
      h(
        'section',
        null,
        h('h2', null, 'This page'),
        h(
          'div',
          { className: 'grid' },
          h('label', { className: 'field' }, 'Colors', this.theme),
          h('label', { className: 'field' }, 'API key', this.key),
        ),
        h(
          'div',
          { className: 'buttons' },
          h('button', { type: 'button', className: 'button', onclick: () => void this.exportAll() }, 'Export all'),
          h('button', { type: 'button', className: 'button', onclick: () => this.file.click() }, 'Import'),
          this.file,
        ),
      ),
      h(
        'section',
        null,
        h('h2', null, 'Keys'),
        h(
          'dl',
          { className: 'keys' },
          ...kKeys.flatMap(([keys, what]) => [
            h('dt', null, ...keys.split(' ').map((key) => h('kbd', null, key))),
            h('dd', null, what),
          ]),
        ),
      ),
    );
    // A click on the backdrop has the dialog itself as its target.
    this.element.onclick = (event) => {
      if (event.target === this.element) this.element.close();
    };
  }

  open(): void {
    this.show();
    this.element.showModal();
    growWithText(this.system);
  }

  /** The conversation has settings of its own. */
  get differ(): boolean {
    const { system, sampling, tools } = this.settings;
    return Boolean(system.trim() || tools.trim() || Object.keys(sampling).length);
  }

  private get settings() {
    return this.chats.current.settings;
  }

  private show(): void {
    const { settings } = this;
    this.system.value = settings.system;
    for (const [name, input] of this.numbers) input.value = settings.sampling[name]?.toString() ?? '';
    const { thinking } = settings.sampling;
    this.thinking.value = thinking === undefined ? '' : thinking ? 'on' : 'off';
    this.tools.value = settings.tools;
    const { sampling, thinks, takesTools } = this.server.properties;
    for (const [name, input] of this.numbers) {
      const value = sampling[name];
      input.placeholder = value === undefined ? 'Default' : `Default: ${Number(value.toPrecision(4))}`;
    }
    this.thinking.disabled = !thinks;
    this.thinking.title = thinks ? '' : 'This model has no such switch';
    this.toolsNote.hidden = takesTools;
    this.toolsProblem.textContent = '';
    this.theme.value = preferences.theme();
    this.key.value = apiKey();
  }

  private changed(): void {
    void this.chats.save(this.chats.current);
  }

  private numberField({ name, label, hint, min, max, step }: (typeof kNumbers)[number]): HTMLElement {
    const input = h('input', {
      type: 'number',
      inputMode: 'decimal',
      min: String(min),
      max: String(max),
      step: String(step),
      placeholder: 'Default',
      oninput: () => {
        if (input.value === '') delete this.settings.sampling[name];
        else if (input.validity.valid || input.validity.stepMismatch)
          this.settings.sampling[name] = input.valueAsNumber;
        this.changed();
      },
    });
    this.numbers.set(name, input);
    return h('label', { className: 'field', title: hint }, label, input);
  }

  private toolsTyped(): void {
    this.settings.tools = this.tools.value;
    this.changed();
    try {
      parseTools(this.tools.value);
      this.toolsProblem.textContent = '';
    } catch (error) {
      this.toolsProblem.textContent = (error as Error).message;
    }
  }

  private reset(): void {
    this.settings.sampling = {};
    this.settings.system = this.settings.tools = '';
    this.changed();
    this.show();
  }

  private keep(): void {
    preferences.setDefaultSettings(this.settings);
    this.element.close();
    notify('New conversations begin with these settings.');
  }

  private async exportAll(): Promise<void> {
    const day = new Date().toISOString().slice(0, 10);
    download(`hearth-${day}.json`, 'application/json', toJson(await this.chats.all()));
  }

  private async import(): Promise<void> {
    const file = this.file.files?.[0];
    this.file.value = '';
    if (!file) return;
    try {
      const conversations = fromJson(await file.text());
      await this.chats.add(conversations);
      this.element.close();
      notify(
        `${conversations.length} ${conversations.length === 1 ? 'conversation was' : 'conversations were'} imported.`,
      );
      if (conversations[0]) location.hash = conversations[0].id;
    } catch (error) {
      this.element.close();
      notify(`Nothing was imported. ${(error as Error).message}`);
    }
  }
}

let asking: Promise<boolean> | null = null;

/** Asks for the key of a server that wants one; false when the user gives none. Several refusals ask once. */
export function askKey(): Promise<boolean> {
  return (asking ??= showKeyDialog().finally(() => (asking = null)));
}

function showKeyDialog(): Promise<boolean> {
  return new Promise((resolve) => {
    const input = h('input', { type: 'password', autocomplete: 'off', required: true, value: '' });
    let given = false;
    const dialog = h(
      'dialog',
      { className: 'ask', 'aria-labelledby': 'key-title' },
      h(
        'form',
        {
          method: 'dialog',
          onsubmit: () => {
            given = true;
            setApiKey(input.value.trim());
          },
        },
        h('h1', { id: 'key-title' }, 'This server wants a key'),
        h('p', null, apiKey() ? 'The key that this browser has was refused.' : 'It is kept in this browser.'),
        h('label', { className: 'field' }, 'API key', input),
        h(
          'div',
          { className: 'buttons' },
          h('button', { type: 'button', className: 'button', onclick: () => dialog.close() }, 'Cancel'),
          h('button', { type: 'submit', className: 'button primary' }, 'Continue'),
        ),
      ),
    );
    dialog.onclose = () => {
      dialog.remove();
      resolve(given);
    };
    document.body.append(dialog);
    dialog.showModal();
  });
}
