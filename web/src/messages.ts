// A path of the tree as the messages of a request.
import type { Conversation, Message, Settings, ToolCall } from './types';

export interface Tool {
  type: 'function';
  function: { name: string; description?: string; parameters?: object };
}

/** The tools of the settings; throws an Error that says what is wrong with them. */
export function parseTools(text: string): Tool[] {
  if (!text.trim()) return [];
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`The tools are not valid JSON: ${(error as Error).message}`);
  }
  if (!Array.isArray(value)) throw new Error('The tools must be a JSON array.');
  return value.map((entry: unknown, index) => {
    // Both forms are in use: the function alone, and wrapped as the protocol has it.
    const tool = entry as { function?: { name?: unknown }; name?: unknown } | null;
    const definition = tool?.function ?? tool;
    if (typeof definition?.name !== 'string') throw new Error(`Tool ${index + 1} has no name.`);
    return { type: 'function', function: definition } as Tool;
  });
}

/** The body of a request for the answer that follows `path`. */
export function requestBody(settings: Settings, path: Message[], model: string): object {
  const { thinking, ...sampling } = settings.sampling;
  const tools = parseTools(settings.tools);
  return {
    ...(model ? { model } : {}),
    messages: [
      ...(settings.system.trim() ? [{ role: 'system', content: settings.system }] : []),
      ...path.filter((message) => message.role !== 'assistant' || hasAnswer(message)).map(toWire),
    ],
    stream: true,
    stream_options: { include_usage: true },
    // Beyond OpenAI's protocol: chunks that say how much of the prompt was read.
    return_progress: true,
    ...sampling,
    ...(thinking === undefined ? {} : { chat_template_kwargs: { enable_thinking: thinking } }),
    ...(tools.length ? { tools } : {}),
  };
}

export function hasAnswer(message: Message): boolean {
  return Boolean(message.content || message.reasoning || completeCalls(message).length);
}

/** The calls of an answer without one that was cut off in the middle of its arguments. */
function completeCalls(message: Message): ToolCall[] {
  return (message.toolCalls ?? []).filter(({ name, args }) => {
    try {
      JSON.parse(args || '{}');
      return name !== '';
    } catch {
      return false;
    }
  });
}

function toWire(message: Message): object {
  if (message.role === 'user') return { role: 'user', content: message.content };
  if (message.role === 'tool') return { role: 'tool', tool_call_id: message.toolCallId, content: message.content };
  const calls = completeCalls(message);
  return {
    role: 'assistant',
    content: message.content,
    // The model's template decides which of earlier thoughts it wants to see again.
    ...(message.reasoning ? { reasoning_content: message.reasoning } : {}),
    ...(calls.length
      ? {
          tool_calls: calls.map(({ id, name, args }) => ({
            id,
            type: 'function',
            function: { name, arguments: args || '{}' },
          })),
        }
      : {}),
  };
}

/** Calls of the last shown answer that have no result yet. */
export function openCalls(conversation: Conversation, path: Message[]): { call: Message; ids: string[] } | null {
  let at = path.length - 1;
  const answered = new Set<string>();
  for (; at >= 0 && path[at]!.role === 'tool'; --at) answered.add(path[at]!.toolCallId ?? '');
  const call = path[at];
  if (!call || conversation.leaf !== path.at(-1)?.id) return null;
  const ids = completeCalls(call)
    .map(({ id }) => id)
    .filter((id) => !answered.has(id));
  return ids.length ? { call, ids } : null;
}
