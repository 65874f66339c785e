// An answer in markdown that grows. Blocks that can no longer change are rendered once; only the last is rendered anew.
import { CodeBlock } from './code_block';
import { h } from './dom';
import { type Block, codeOf, parseBlocks, renderBlocks, type Shared } from './markdown';

export class MarkdownView {
  readonly element = h('div', { className: 'markdown' });
  /** Called with the text of blocks that are complete, for readers of the screen. */
  onSettled: (text: string) => void = () => undefined;
  private shared: Shared = {};
  private source = '';
  /** Characters of the source that are rendered for good. */
  private settledLength = 0;
  /** Elements of what follows them, to be replaced. */
  private tail: ChildNode[] = [];
  private liveCode: CodeBlock | null = null;

  /** Shows `source`, which usually continues what was shown. `final` when no more will come. */
  set(source: string, final: boolean): void {
    const hasReferences = Object.keys(this.shared.references ?? {}).length > 0;
    if (!source.startsWith(this.source) || (final && hasReferences)) this.reset();
    this.source = source;
    const rest = source.slice(this.settledLength);
    const blocks = parseBlocks(rest, this.shared);
    const settled = final ? blocks.length : settledCount(rest, blocks);
    if (!final && settled === 0 && this.continueCode(blocks)) return;

    this.dropTail();
    if (settled > 0) {
      const nodes = renderBlocks(blocks.slice(0, settled), this.shared);
      const text = Array.from(nodes.children, (child) => child.textContent).join(' ');
      this.element.append(nodes);
      this.onSettled(text);
    }
    if (final) this.settledLength = source.length;
    else if (settled > 0) this.settledLength += offsetOfLine(rest, blocks[settled]!.line);
    this.showTail(blocks.slice(settled));
  }

  private showTail(blocks: Block[]): void {
    const last = blocks.at(-1);
    const code = last && codeOf(last);
    const nodes = renderBlocks(code ? blocks.slice(0, -1) : blocks, this.shared);
    if (code) {
      this.liveCode = new CodeBlock(code.language);
      this.liveCode.set(code.text, true);
      nodes.append(this.liveCode.element);
    }
    this.tail = Array.from(nodes.childNodes);
    this.element.append(nodes);
  }

  /** Code that only grows keeps its element, with its place and its selection. */
  private continueCode(blocks: Block[]): boolean {
    const code = blocks.length === 1 ? codeOf(blocks[0]!) : null;
    if (!code || !this.liveCode || this.tail.length !== 1 || code.language !== this.liveCode.language) return false;
    this.liveCode.set(code.text, true);
    return true;
  }

  private dropTail(): void {
    this.liveCode = null;
    for (const node of this.tail) node.remove();
    this.tail = [];
  }

  private reset(): void {
    this.shared = {};
    this.settledLength = 0;
    this.tail = [];
    this.liveCode = null;
    this.element.replaceChildren();
  }
}

/**
 * How many blocks cannot change any more: those before a block whose first line is complete. While that line is not,
 * it may still turn out to continue the block above ("1" of "1. item").
 */
function settledCount(source: string, blocks: Block[]): number {
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
