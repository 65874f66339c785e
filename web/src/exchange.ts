// Conversations as files: JSON out and in, markdown out.
import { newId } from './ids';
import { pathTo, shownPath } from './tree';
import type { Conversation, Ending, Message, Sampling, Settings, Stats, ToolCall } from './types';

const kFormat = 'hearth-conversations';

export function toJson(conversations: Conversation[]): string {
  return JSON.stringify({ format: kFormat, version: 1, conversations }, null, 1);
}

export function toMarkdown(conversation: Conversation): string {
  const parts = [`# ${conversation.title}`];
  if (conversation.settings.system.trim()) parts.push('## System', conversation.settings.system.trim());
  for (const message of shownPath(conversation)) {
    parts.push(
      { user: '## You', assistant: `## ${message.model || 'Assistant'}`, tool: '## Tool result' }[message.role],
    );
    if (message.reasoning) {
      parts.push(`<details><summary>Thinking</summary>\n\n${message.reasoning.trim()}\n\n</details>`);
    }
    if (message.content.trim()) parts.push(message.content.trim());
    for (const call of message.toolCalls ?? []) parts.push(`Tool call \`${call.name}\`:`, fenced(call.args, 'json'));
  }
  return `${parts.join('\n\n')}\n`;
}

/** Fenced with more backticks than the text has in a row. */
function fenced(text: string, language: string): string {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}

export function fileName(title: string, extension: string): string {
  const name = title
    .normalize('NFKC')
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 60);
  return `${name || 'conversation'}.${extension}`;
}

export function download(name: string, type: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Conversations of a file. Takes only the fields it knows; throws an Error that says what is wrong. */
export function fromJson(text: string): Conversation[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error('The file is not JSON.');
  }
  const file = record(value);
  if (file.format !== kFormat || !Array.isArray(file.conversations)) {
    throw new Error('The file was not exported by this page.');
  }
  return file.conversations.map(readConversation);
}

function readConversation(value: unknown): Conversation {
  const from = record(value);
  const messages = (Array.isArray(from.messages) ? from.messages : []).map(readMessage);
  const ids = new Set(messages.map(({ id }) => id));
  if (ids.size !== messages.length) throw new Error('The file has two messages with one id.');
  for (const message of messages) if (message.parent !== null && !ids.has(message.parent)) message.parent = null;
  const conversation: Conversation = {
    id: newId(),
    title: string(from.title).slice(0, 200) || 'Imported',
    created: number(from.created) ?? Date.now(),
    updated: number(from.updated) ?? Date.now(),
    settings: readSettings(from.settings),
    leaf: ids.has(string(from.leaf)) ? string(from.leaf) : (messages.at(-1)?.id ?? null),
    messages,
  };
  // Parents that form a ring would lead to a path without a first message.
  if (messages.length && pathTo(conversation, conversation.leaf)[0]?.parent !== null) {
    throw new Error('The messages of the file follow each other in a circle.');
  }
  return conversation;
}

function readMessage(value: unknown): Message {
  const from = record(value);
  const role = from.role;
  if (role !== 'user' && role !== 'assistant' && role !== 'tool') throw new Error('The file has an unknown role.');
  if (!string(from.id)) throw new Error('The file has a message without an id.');
  const message: Message = {
    id: string(from.id),
    parent: string(from.parent) || null,
    role,
    content: string(from.content),
    created: number(from.created) ?? Date.now(),
  };
  if (string(from.reasoning)) message.reasoning = string(from.reasoning);
  if (number(from.thinkingMs) !== undefined) message.thinkingMs = number(from.thinkingMs);
  if (Array.isArray(from.toolCalls)) message.toolCalls = from.toolCalls.map(readCall);
  if (string(from.model)) message.model = string(from.model);
  if (string(from.error)) message.error = string(from.error);
  if (string(from.toolCallId)) message.toolCallId = string(from.toolCallId);
  const endings: Ending[] = ['stop', 'length', 'tool_calls', 'stopped', 'interrupted', 'broken', 'failed'];
  if (role === 'assistant') message.ending = endings.find((ending) => ending === from.ending) ?? 'stopped';
  if (from.stats) {
    const stats = record(from.stats);
    const names = ['promptTokens', 'cachedTokens', 'answerTokens', 'tokensPerSecond', 'promptPerSecond'] as const;
    message.stats = pick<Stats>(stats, names);
  }
  return message;
}

function readCall(value: unknown): ToolCall {
  const from = record(value);
  return { id: string(from.id), name: string(from.name), args: string(from.args) };
}

export function readSettings(value: unknown): Settings {
  const from = record(value);
  const sampling = record(from.sampling);
  return {
    model: string(from.model),
    system: string(from.system),
    sampling: {
      ...pick<Sampling>(sampling, ['temperature', 'top_p', 'top_k', 'min_p', 'max_tokens']),
      ...(typeof sampling.thinking === 'boolean' ? { thinking: sampling.thinking } : {}),
    },
    tools: string(from.tools),
  };
}

function pick<T>(from: Record<string, unknown>, names: readonly (keyof T & string)[]): T {
  return Object.fromEntries(names.map((name) => [name, number(from[name])]).filter(([, v]) => v !== undefined)) as T;
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function string(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function number(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
