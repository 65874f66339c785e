// An answer in markdown that grows. Blocks that can no longer change are rendered once; only the last is rendered anew.
import { CodeBlock } from './code_block';
import { h } from './dom';
import { type Block, codeOf, parseBlocks, renderBlock, type Shared } from './markdown';

export class MarkdownView {
  readonly element = h('div', { className: 'markdown' });
  /** Called with the text of each block that is complete, for readers of the screen. */
  onBlock: (text: string) => void = () => undefined;
  private shared: Shared = {};
  private source = '';
  /** Characters of the source, and children of the element, that are settled. */
  private settledLength = 0;
  private settledNodes = 0;
  private liveCode: CodeBlock | null = null;

  /** Shows `source`, which usually continues what was shown. `final` when no more will come. */
  set(source: string, final: boolean): void {
    const hadReferences = Object.keys(this.shared.references ?? {}).length > 0;
    if (!source.startsWith(this.source) || (final && hadReferences)) this.reset();
    this.source = source;
    const rest = source.slice(this.settledLength);
    const blocks = parseBlocks(rest, this.shared);
    const settled = final ? blocks.length : settledBlocks(rest, blocks);

    if (!final && settled === 0 && this.continueCode(blocks)) return;
    this.dropUnsettled();
    for (const [index, block] of blocks.entries()) {
      const code = codeOf(block);
      if (!final && index === blocks.length - 1 && code) {
        this.liveCode = new CodeBlock(code.language);
        this.liveCode.set(code.text, true);
        this.element.append(this.liveCode.element);
      } else {
        this.element.append(renderBlock(block, this.shared));
      }
      if (index < settled) {
        const text = Array.from(this.element.childNodes).slice(this.settledNodes).map((node) => node.textContent).join(' ');
        this.settledNodes = this.element.childNodes.length;
        this.onBlock(text);
      }
    }
    if (!final && settled > 0) this.settledLength += offsetOfLine(rest, blocks[settled]!.line);
    if (final) this.settledLength = source.length;
  }

  private continueCode(blocks: Block[]): boolean {
    const code = blocks.length === 1 ? codeOf(blocks[0]!) : null;
    if (!code || !this.liveCode || code.language !== this.liveCode.language) return false;
    this.liveCode.set(code.text, true);
    return true;
  }

  private dropUnsettled(): void {
    this.liveCode = null;
    while (this.element.childNodes.length > this.settledNodes) this.element.lastChild!.remove();
  }

  private reset(): void {
    this.shared = {};
    this.settledLength = this.settledNodes = 0;
    this.dropUnsettled();
  }
}

/**
 * How many blocks cannot change any more: those before a block whose first line is complete. While that line is not,
 * it may still turn out to continue the block above ("1" of "1. item").
 */
function settledBlocks(source: string, blocks: Block[]): number {
  const lastLine = source.lastIndexOf('\n') < 0 ? 0 : source.split('\n').length - 1;
  for (let index = blocks.length - 1; index > 0; --index) {
    if (blocks[index]!.line < lastLine) return index;
  }
  return 0;
}

function offsetOfLine(source: string, line: number): number {
  let offset = 0;
  for (let at = 0; at < line; ++at) offset = source.indexOf('\n', offset) + 1;
  return offset;
}
