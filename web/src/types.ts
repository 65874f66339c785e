// What a conversation is: a tree of messages, of which one path is shown.

export interface ToolCall {
  id: string;
  name: string;
  /** JSON as the model wrote it; not yet complete while it streams, and not always valid. */
  args: string;
}

/** Tokens and speeds of one answer. A field is absent when the server did not say. */
export interface Stats {
  promptTokens?: number;
  cachedTokens?: number;
  answerTokens?: number;
  tokensPerSecond?: number;
  promptPerSecond?: number;
}

/**
 * Why an answer is no longer growing; `running` while it is. `stopped` by the user, `interrupted` by leaving the page,
 * `broken` after some text, `failed` without any.
 */
export type Ending = 'running' | 'stop' | 'length' | 'tool_calls' | 'stopped' | 'interrupted' | 'broken' | 'failed';

export interface Message {
  id: string;
  /** The message it follows; null for the first one. Messages with one parent are versions of each other. */
  parent: string | null;
  role: 'user' | 'assistant' | 'tool';
  content: string;
  /** Milliseconds since 1970. */
  created: number;
  // Of answers:
  reasoning?: string;
  thinkingMs?: number;
  toolCalls?: ToolCall[];
  model?: string;
  ending?: Ending;
  error?: string;
  stats?: Stats;
  // Of tool results:
  toolCallId?: string;
}

/** Absent means: what the server takes by itself. */
export interface Sampling {
  temperature?: number;
  top_p?: number;
  top_k?: number;
  min_p?: number;
  max_tokens?: number;
  thinking?: boolean;
}

export interface Settings {
  /** Empty: the first model that the server lists. */
  model: string;
  system: string;
  sampling: Sampling;
  /** JSON array of function definitions offered to the model, as text; empty for none. */
  tools: string;
}

/** What the sidebar needs to know of a conversation. */
export interface Head {
  id: string;
  title: string;
  created: number;
  updated: number;
}

export interface Conversation extends Head {
  settings: Settings;
  /** Last message of the path that is shown. */
  leaf: string | null;
  messages: Message[];
}
