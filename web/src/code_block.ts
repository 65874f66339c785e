// A block of code with its language, a copy button, and colors.
import { copyFrom } from './clipboard';
import { h, iconButton } from './dom';
import { highlighted } from './highlight';

/** While an answer streams, the last block is colored again at every step, but only up to this many characters. */
const kLiveLimit = 6_000;

export class CodeBlock {
  readonly element: HTMLElement;
  private readonly code = h('code');
  private text = '';
  private plain = true;

  constructor(readonly language: string) {
    const copy = iconButton('copy', 'Copy code', () => void copyFrom(copy, this.text, 'Copy code'));
    this.element = h(
      'figure',
      { className: 'code' },
      h('figcaption', null, h('span', null, language || 'text'), copy),
      h('pre', { tabIndex: 0, 'aria-label': `Code${language ? ` in ${language}` : ''}`, role: 'region' }, this.code),
    );
  }

  set(text: string, streaming: boolean): void {
    const colored = streaming && text.length > kLiveLimit ? null : highlighted(text, this.language);
    if (colored) {
      this.code.replaceChildren(colored);
    } else if (this.plain && this.code.lastChild instanceof Text && text.startsWith(this.text)) {
      this.code.lastChild.appendData(text.slice(this.text.length));
    } else {
      this.code.textContent = text;
    }
    this.plain = colored === null;
    this.text = text;
  }
}
