// The tree of messages of a conversation: paths, versions, and what is added to it.
import { newId } from './ids';
import type { Conversation, Message, Settings } from './types';

const kTitleLength = 60;

export function newConversation(settings: Settings): Conversation {
  const now = Date.now();
  return {
    id: newId(),
    title: '',
    created: now,
    updated: now,
    settings: structuredClone(settings),
    leaf: null,
    messages: [],
  };
}

export function find(conversation: Conversation, id: string | null): Message | undefined {
  return id === null ? undefined : conversation.messages.find((message) => message.id === id);
}

/** Messages from the first to `leaf`. Ends early where a parent is missing or repeats, as damaged imports may. */
export function pathTo(conversation: Conversation, leaf: string | null): Message[] {
  const byId = new Map(conversation.messages.map((message) => [message.id, message]));
  const path: Message[] = [];
  for (let at = leaf; at !== null;) {
    const message = byId.get(at);
    if (!message) break;
    byId.delete(at);
    path.push(message);
    at = message.parent;
  }
  return path.reverse();
}

export function shownPath(conversation: Conversation): Message[] {
  return pathTo(conversation, conversation.leaf);
}

/** The message itself and those that stand in its place, oldest first. */
export function versionsOf(conversation: Conversation, message: Message): Message[] {
  return conversation.messages.filter((other) => other.parent === message.parent);
}

/** Shows `message`, and below it the newest message at every step. */
export function showVersion(conversation: Conversation, message: Message): void {
  const newestChild = new Map<string | null, Message>();
  for (const other of conversation.messages) newestChild.set(other.parent, other);
  const seen = new Set<string>();
  let leaf = message;
  for (let next = newestChild.get(leaf.id); next && !seen.has(next.id); next = newestChild.get(leaf.id)) {
    seen.add(next.id);
    leaf = next;
  }
  conversation.leaf = leaf.id;
}

export function append(
  conversation: Conversation,
  parent: string | null,
  role: Message['role'],
  content: string,
): Message {
  const message: Message = { id: newId(), parent, role, content, created: Date.now() };
  conversation.messages.push(message);
  conversation.leaf = message.id;
  conversation.updated = message.created;
  if (!conversation.title && role === 'user') conversation.title = titleFrom(content);
  return message;
}

/** Takes a message without children out, and shows its parent. */
export function removeLeaf(conversation: Conversation, message: Message): void {
  conversation.messages = conversation.messages.filter((other) => other !== message);
  if (conversation.leaf === message.id) conversation.leaf = message.parent;
}

function titleFrom(text: string): string {
  const line = text.trim().split('\n', 1)[0]?.trim() ?? '';
  if (line.length <= kTitleLength) return line || 'Untitled';
  const cut = line.slice(0, kTitleLength);
  const space = cut.lastIndexOf(' ');
  return `${(space > kTitleLength / 2 ? cut.slice(0, space) : cut).trimEnd()}…`;
}
