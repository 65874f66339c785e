// A tool call of an answer: its name and arguments, and its result or a field to type one.
import { CodeBlock } from './code_block';
import { growWithText, h, icon } from './dom';
import type { ToolCall } from './types';

export class ToolView {
  readonly element: HTMLDetailsElement;
  readonly field = h('textarea', {
    rows: 2,
    placeholder: 'Type what the tool returned',
    oninput: () => growWithText(this.field),
  });
  private readonly name = h('code');
  private readonly state = h('span', { className: 'state' });
  private readonly args = new CodeBlock('json');
  private readonly result = h('pre', { className: 'result', tabIndex: 0 });
  private readonly entry: HTMLElement;
  private readonly outcome: HTMLElement;

  constructor() {
    this.entry = h('label', { className: 'field', hidden: true }, 'Result', this.field);
    this.outcome = h('div', null, h('div', { className: 'caption' }, 'Result'), this.result);
    this.element = h(
      'details',
      { className: 'tool' },
      h('summary', null, icon('tool'), this.name, this.state),
      this.args.element,
      this.outcome,
      this.entry,
    );
  }

  /** `open`: the call waits for a result that the user can give. */
  set(call: ToolCall, result: string | undefined, streaming: boolean, open: boolean): void {
    this.name.textContent = call.name || 'tool';
    this.state.textContent = streaming
      ? 'is being written'
      : result !== undefined
        ? 'answered'
        : open
          ? 'needs a result'
          : '';
    this.args.set(streaming ? call.args : pretty(call.args), streaming);
    this.outcome.hidden = result === undefined;
    this.result.textContent = result ?? '';
    if (this.entry.hidden && open) this.element.open = true;
    this.entry.hidden = !open;
  }
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
