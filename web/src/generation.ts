// One answer while it is made: chunks of the stream go into its message.
import { ApiError, chat, type Chunk } from './api';
import { newId } from './ids';
import type { Ending, Message } from './types';

const kEndings: Record<string, Ending> = { stop: 'stop', length: 'length', tool_calls: 'tool_calls' };

export class Generation {
  /** Share of the prompt that was read, 0 to 1; undefined when the server does not say. */
  read: number | undefined;
  private readonly abort = new AbortController();
  private readonly started = performance.now();
  private firstToken = 0;
  private deltas = 0;
  private exact = false;
  private stoppedAs: Ending = 'stopped';

  /** `onChange` is called after every chunk, and once at the end, when `message.ending` is no longer `running`. */
  constructor(
    readonly message: Message,
    private readonly onChange: () => void,
  ) {
    message.ending = 'running';
  }

  /** Seconds since the request was sent. */
  get waitedSeconds(): number {
    return (performance.now() - this.started) / 1000;
  }

  /** Seconds since the first token; 0 before it. */
  get writingSeconds(): number {
    return this.firstToken ? (performance.now() - this.firstToken) / 1000 : 0;
  }

  get answering(): boolean {
    return this.firstToken > 0;
  }

  stop(why: 'stopped' | 'interrupted' = 'stopped'): void {
    this.stoppedAs = why;
    this.abort.abort();
  }

  /** Never fails: what went wrong is in the message. Returns the HTTP status of a refusal, otherwise 0. */
  async run(body: object): Promise<number> {
    let status = 0;
    let ending: Ending = 'stop';
    try {
      await chat(body, this.abort.signal, (chunk) => {
        const reason = chunk.choices?.[0]?.finish_reason;
        if (reason) ending = kEndings[reason] ?? 'stop';
        this.take(chunk);
        this.onChange();
      });
    } catch (error) {
      if (this.abort.signal.aborted) {
        ending = this.stoppedAs;
      } else {
        ending = this.answering ? 'broken' : 'failed';
        this.message.error = error instanceof Error ? error.message : String(error);
        status = error instanceof ApiError ? error.status : 0;
      }
    }
    this.endThinking();
    this.message.ending = ending;
    this.onChange();
    return status;
  }

  private take(chunk: Chunk): void {
    const { message } = this;
    if (chunk.model) message.model = chunk.model;
    const { processed, total } = chunk.prompt_progress ?? {};
    if (processed !== undefined && total) this.read = Math.min(1, processed / total);
    const delta = chunk.choices?.[0]?.delta;
    const thought = delta?.reasoning_content ?? delta?.reasoning;
    if (thought) message.reasoning = (message.reasoning ?? '') + thought;
    if (delta?.content) message.content += delta.content;
    for (const piece of delta?.tool_calls ?? []) {
      const calls = (message.toolCalls ??= []);
      const index = piece.index ?? calls.length;
      // Indices count up; a damaged one must not make a huge array.
      if (index > calls.length) continue;
      const call = (calls[index] ??= { id: piece.id ?? `call_${newId()}`, name: '', args: '' });
      call.name += piece.function?.name ?? '';
      call.args += piece.function?.arguments ?? '';
    }
    if (thought || delta?.content || delta?.tool_calls?.length) {
      this.firstToken ||= performance.now();
      ++this.deltas;
      if (!thought) this.endThinking();
    }
    this.count(chunk);
  }

  private endThinking(): void {
    const { message } = this;
    if (message.reasoning && message.thinkingMs === undefined) {
      message.thinkingMs = Math.round(performance.now() - (this.firstToken || this.started));
    }
  }

  /** Numbers of the server where it gives them; until then a delta counts as a token, which is close. */
  private count({ usage, timings }: Chunk): void {
    const stats = (this.message.stats ??= {});
    if (usage) {
      this.exact = true;
      stats.promptTokens = usage.prompt_tokens ?? stats.promptTokens;
      stats.answerTokens = usage.completion_tokens ?? stats.answerTokens;
      stats.cachedTokens = usage.prompt_tokens_details?.cached_tokens ?? stats.cachedTokens;
    }
    if (timings) {
      stats.tokensPerSecond = timings.predicted_per_second ?? stats.tokensPerSecond;
      stats.promptPerSecond = timings.prompt_per_second ?? stats.promptPerSecond;
      stats.cachedTokens = timings.cache_n ?? stats.cachedTokens;
    }
    if (this.exact) return;
    stats.answerTokens = timings?.predicted_n ?? this.deltas;
    const seconds = (performance.now() - this.firstToken) / 1000;
    if (!timings && this.deltas > 1 && seconds > 0) stats.tokensPerSecond = (this.deltas - 1) / seconds;
  }
}
