// The only way from a string of HTML to elements. All that a model writes passes here.
import DOMPurify from 'dompurify';

const kTags = [
  'a',
  'blockquote',
  'br',
  'code',
  'del',
  'div',
  'em',
  'h1',
  'h2',
  'h3',
  'h4',
  'h5',
  'h6',
  'hr',
  'li',
  'ol',
  'p',
  'pre',
  's',
  'span',
  'strong',
  'table',
  'tbody',
  'td',
  'th',
  'thead',
  'tr',
  'ul',
];
const kAttributes = ['class', 'href', 'start', 'tabindex', 'rel', 'target', 'title'];
/** Those whose value is no address; the check of addresses is not for them. */
const kPlainAttributes = ['start', 'tabindex', 'rel', 'target'];

/** Addresses that a link may lead to. Everything else stays text. */
export const kLinkAddress = /^(?:https?:|mailto:)/i;

export function safeFragment(html: string): DocumentFragment {
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: kTags,
    ALLOWED_ATTR: kAttributes,
    ALLOWED_URI_REGEXP: kLinkAddress,
    ADD_URI_SAFE_ATTR: kPlainAttributes,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
}
