// The server's protocol: models, properties, health, and streamed answers.
import { readEvents } from './sse';

const kKeyName = 'hearth.key';

/** A refusal or a failure. `status` is the HTTP status, 0 when there was no answer at all. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

export interface ModelInfo {
  id: string;
  contextTokens?: number;
  /** It cannot answer yet. */
  loading: boolean;
}

export interface Properties {
  contextTokens?: number;
  /** What the server takes for settings that a request does not have. */
  sampling: Record<string, number>;
  /** The model can be told to think or not to. */
  thinks: boolean;
  takesTools: boolean;
}

/** The parts of a chunk of a streamed answer that the page reads. */
export interface Chunk {
  choices?: {
    delta?: {
      content?: string | null;
      reasoning_content?: string | null;
      reasoning?: string | null;
      tool_calls?: { index?: number; id?: string; function?: { name?: string; arguments?: string } }[];
    };
    finish_reason?: string | null;
  }[];
  usage?: {
    prompt_tokens?: number;
    completion_tokens?: number;
    prompt_tokens_details?: { cached_tokens?: number } | null;
  } | null;
  timings?: {
    prompt_n?: number;
    prompt_per_second?: number;
    predicted_n?: number;
    predicted_per_second?: number;
    cache_n?: number;
  } | null;
  /** Tokens of the prompt that were read so far, and all of them. */
  prompt_progress?: { processed?: number; total?: number };
  error?: { message?: string } | string;
  model?: string;
}

export function apiKey(): string {
  return localStorage.getItem(kKeyName) ?? '';
}

export function setApiKey(key: string): void {
  if (key) localStorage.setItem(kKeyName, key);
  else localStorage.removeItem(kKeyName);
}

// Paths are relative to the page, so that it also works below a prefix of a proxy.
async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (apiKey()) headers.set('Authorization', `Bearer ${apiKey()}`);
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers, cache: 'no-store' });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError('The server cannot be reached.', 0);
  }
  if (!response.ok) throw new ApiError(await refusal(response), response.status);
  return response;
}

/** The server's words for a refusal, or the status where there are none. */
async function refusal(response: Response): Promise<string> {
  const text = await response.text().catch(() => '');
  try {
    const message = errorText((JSON.parse(text) as Chunk).error);
    if (message) return message;
  } catch {
    // Not JSON: a proxy's page, which says no more than the status does.
  }
  return `The server answered with status ${response.status} ${response.statusText}`.trim();
}

export function errorText(error: Chunk['error']): string {
  return typeof error === 'string' ? error : typeof error?.message === 'string' ? error.message : '';
}

/** The models of the server. The length of the context is no part of OpenAI's protocol: some servers have it here. */
export async function models(): Promise<ModelInfo[]> {
  type Entry = { id?: unknown; context_length?: unknown; status?: unknown };
  const answer = (await (await request('v1/models')).json()) as { data?: Entry[] };
  return (answer.data ?? [])
    .filter(({ id }) => typeof id === 'string')
    .map((entry) => ({
      id: entry.id as string,
      contextTokens: typeof entry.context_length === 'number' ? entry.context_length : undefined,
      loading: entry.status === 'loading',
    }));
}

/** What our own server says of its model; others may have other properties, or none. */
export async function properties(): Promise<Properties> {
  const answer = (await (await request('props')).json()) as Record<string, unknown>;
  const sampling = (answer.default_sampling ?? {}) as Record<string, unknown>;
  const numbers = Object.entries(sampling).filter((entry): entry is [string, number] => typeof entry[1] === 'number');
  return {
    contextTokens: typeof answer.context_tokens === 'number' ? answer.context_tokens : undefined,
    sampling: Object.fromEntries(numbers),
    thinks: answer.supports_thinking !== false,
    takesTools: answer.supports_tools !== false,
  };
}

export async function healthy(): Promise<boolean> {
  return request('health').then(
    () => true,
    () => false,
  );
}

/** Streams an answer; `onChunk` sees every chunk. Throws an ApiError for refusals and for streams that break. */
export async function chat(body: object, signal: AbortSignal, onChunk: (chunk: Chunk) => void): Promise<void> {
  const response = await request('v1/chat/completions', {
    method: 'POST',
    signal,
    body: JSON.stringify(body),
    headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
  });
  if (!response.body) throw new ApiError('The server sent no answer.', response.status);
  let ended = false;
  try {
    for await (const data of readEvents(response.body)) {
      if (data === '[DONE]') return;
      const chunk = JSON.parse(data) as Chunk;
      if (chunk.error) throw new ApiError(errorText(chunk.error) || 'The server reported an error.', response.status);
      if (chunk.choices?.[0]?.finish_reason) ended = true;
      onChunk(chunk);
    }
  } catch (error) {
    if (signal.aborted || error instanceof ApiError) throw error;
    if (error instanceof SyntaxError) throw new ApiError('The server sent a chunk that is not JSON.', response.status);
    throw new ApiError('The connection broke before the answer was complete.', 0);
  }
  if (!ended) throw new ApiError('The connection ended before the answer was complete.', 0);
}
