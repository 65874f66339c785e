// Markdown of a model to tokens and elements. HTML in it stays text, images become links.
import MarkdownIt, { type Env, type StateCore, type Token } from 'markdown-it';
import { CodeBlock } from './code_block';
import { kLinkAddress, safeFragment } from './sanitize';

/** A paragraph or cell past this many characters stays plain: what it costs grows with the square of its length. */
const kInlineLimit = 20_000;

const parser = new MarkdownIt({ html: false, linkify: true, breaks: true, maxNesting: 40 });
parser.validateLink = (address) => kLinkAddress.test(address.trim());
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });

parser.core.ruler.at('inline', (state: StateCore) => {
  for (const token of state.tokens) {
    if (token.type !== 'inline') continue;
    if (token.content.length <= kInlineLimit) {
      state.md.inline.parse(token.content, state.md, state.env, (token.children ??= []));
    } else {
      const text = new state.Token('text', '', 0);
      text.content = token.content;
      token.children = [text];
      token.content = '';
    }
  }
});

const rules = parser.renderer.rules;
const escape = parser.utils.escapeHtml;
rules.link_open = (tokens, index, options, _env, self) => {
  tokens[index]!.attrSet('target', '_blank');
  tokens[index]!.attrSet('rel', 'noopener noreferrer');
  return self.renderToken(tokens, index, options);
};
// An image would tell its host that, and when, the answer was read.
rules.image = (tokens, index, _options, env, self) => {
  const token = tokens[index]!;
  const label = self.renderInlineAsText(token.children ?? [], parser.options, env) || 'image';
  const lastLink = tokens.slice(0, index).findLast(({ type }) => type === 'link_open' || type === 'link_close');
  if (lastLink?.type === 'link_open') return escape(label);
  return `<a href="${escape(String(token.attrGet('src') ?? ''))}" target="_blank" rel="noopener noreferrer">${escape(label)}</a>`;
};
rules.table_open = () => '<div class="table" tabindex="0"><table>';
rules.table_close = () => '</table></div>';

/** A block at the top level: its tokens and the line it begins at, counted from 0. */
export interface Block {
  tokens: Token[];
  line: number;
}

/** What the blocks of one answer share: the targets of reference links. */
export type Shared = Env;

export function parseBlocks(source: string, shared: Shared): Block[] {
  const blocks: Block[] = [];
  let depth = 0;
  for (const token of parser.parse(source, shared)) {
    if (depth === 0) blocks.push({ tokens: [], line: token.map?.[0] ?? 0 });
    blocks.at(-1)!.tokens.push(token);
    depth += token.nesting;
  }
  return blocks;
}

/** Language and text when the block is code and nothing else. */
export function codeOf(block: Block): { language: string; text: string } | null {
  const token = block.tokens[0];
  if (block.tokens.length !== 1 || !token || (token.type !== 'fence' && token.type !== 'code_block')) return null;
  return { language: languageOf(token.info), text: token.content };
}

/** The elements of blocks that follow each other. */
export function renderBlocks(blocks: Block[], shared: Shared): DocumentFragment {
  const result = document.createDocumentFragment();
  // Sanitizing costs per call, so that what is no code goes through it together.
  let waiting: Token[] = [];
  const flush = () => {
    if (waiting.length) result.append(renderText(waiting, shared));
    waiting = [];
  };
  for (const block of blocks) {
    const code = codeOf(block);
    if (!code) {
      for (const token of block.tokens) waiting.push(token);
    } else {
      flush();
      result.append(codeElement(code.language, code.text));
    }
  }
  flush();
  return result;
}

function renderText(tokens: Token[], shared: Shared): DocumentFragment {
  const fragment = safeFragment(parser.renderer.render(tokens, parser.options, shared));
  for (const inner of fragment.querySelectorAll('pre > code')) {
    const language = languageOf(/language-(\S+)/.exec(inner.className)?.[1] ?? '');
    inner.parentElement!.replaceWith(codeElement(language, inner.textContent ?? ''));
  }
  return fragment;
}

function codeElement(language: string, text: string): HTMLElement {
  const block = new CodeBlock(language);
  block.set(text, false);
  return block.element;
}

function languageOf(info: string): string {
  return (/^[\w+#.-]{1,30}/.exec(info.trim())?.[0] ?? '').toLowerCase();
}
