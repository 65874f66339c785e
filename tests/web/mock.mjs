// A server that speaks the protocol of `hearth serve` and answers from a script, for tests of the chat page.
//
//     node tests/web/mock.mjs [PORT]      serves web/dist/index.html and the API
//
// The last user message chooses the answer: see kAnswers. Everything else is echoed word by word.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

const page = new URL('../../web/dist/index.html', import.meta.url);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export const markdownAnswer = `## Sorting

Here is a **short** example with \`code\`, a [link](https://example.com/a) and a list:

1. first
2. second
   - nested

\`\`\`python
def quick(items):
    # sorts a list
    if len(items) < 2:
        return items
    pivot, *rest = items
    return quick([x for x in rest if x < pivot]) + [pivot] + quick([x for x in rest if x >= pivot])
\`\`\`

| Name | Worst case | Note |
| --- | --- | --- |
| Quick | O(n²) | in place |
| Merge | O(n log n) | stable |

> A quote to end with.
`;

export const attack = `<script>window.hacked=1</script>
<img src=x onerror="window.hacked=2">
<svg onload="window.hacked=3"><a xlink:href="javascript:window.hacked=4">x</a></svg>

[click](javascript:window.hacked=5) [data](data:text/html,<script>1</script>) [ok](https://example.com/ok)

![pixel](https://tracker.example/pixel.png) [![in link](https://tracker.example/2.png)](https://example.com/b)

<a href="https://example.com" onclick="window.hacked=6">raw</a> <iframe src="https://example.com"></iframe>
<style>body{display:none}</style><form action="https://example.com"><input></form>

\`\`\`html"onmouseover="window.hacked=7
<script>window.hacked=8</script>
\`\`\`

[ref]

[ref]: javascript:window.hacked=9
[x](https://example.com/"onclick="window.hacked=10) <https://example.com/auto>
`;

function words(text) {
  return text.match(/\s*\S+\s*/g) ?? [];
}

/** What to send for a message: pieces of the answer, thoughts, tool calls, pauses in ms between pieces. */
function script(text, turn) {
  if (text.startsWith('markdown')) return { content: words(markdownAnswer) };
  if (text.startsWith('attack')) return { content: [attack] };
  if (text.startsWith('think'))
    return {
      reasoning: words('First I **consider** the question. Then I decide.'),
      content: words('The answer is 42.'),
    };
  if (text.startsWith('slow')) return { content: Array.from({ length: 400 }, (_, i) => `word${i} `), pause: 25 };
  if (text.startsWith('long'))
    return {
      content: Array.from({ length: 3000 }, (_, i) => `Line ${i} of a long answer with some *emphasis*.\n\n`),
      batchPause: 15,
    };
  if (text.startsWith('lines'))
    return { content: Array.from({ length: 200 }, (_, i) => `Paragraph ${i}.\n\n`), pause: 20 };
  if (text.startsWith('code'))
    return {
      content: ['```js\n', ...Array.from({ length: 400 }, (_, i) => `const value${i} = ${i};\n`), '```\n\nDone.'],
    };
  if (text.startsWith('tool')) {
    return { content: ['Let me look. '], call: { name: 'weather', args: ['{"city":', '"Ber', 'lin"}'] } };
  }
  if (text.startsWith('refuse'))
    return { status: 400, error: 'The prompt has 9000 tokens; the context has room for 8192.' };
  if (text.startsWith('break')) return { content: words('This answer ends before'), drop: true };
  if (text.startsWith('fault')) return { content: words('Some words'), error: 'The device ran out of memory.' };
  if (text.startsWith('limit')) return { content: words('Cut at the'), finish: 'length' };
  if (text.startsWith('wait')) return { content: ['At last.'], before: 4500 };
  if (text.startsWith('turn')) return { content: [`This is turn ${turn}.`] };
  return { content: words(`You said: ${text}`) };
}

export function startMock({ port = 0, key = '', models = ['pocket'], contextTokens = 8192 } = {}) {
  const state = { requests: [], aborted: 0, failing: false, loading: false };

  async function chat(request, response, body) {
    state.requests.push(body);
    state.origin = request.headers.origin;
    const last = body.messages.at(-1);
    const text = last.role === 'tool' ? `tool result was ${last.content}` : last.content;
    const plan =
      last.role === 'tool' ? { content: words(`The tool said ${last.content}.`) } : script(text, state.requests.length);
    if (plan.status) {
      response.writeHead(plan.status, { 'Content-Type': 'application/json' });
      return response.end(
        JSON.stringify({ error: { message: plan.error, type: 'invalid_request_error', code: null } }),
      );
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    let open = true;
    response.on('close', () => {
      if (!response.writableFinished) ++state.aborted;
      open = false;
    });
    const send = (chunk) =>
      response.write(
        `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', model: body.model ?? models[0], ...chunk })}\n\n`,
      );
    const delta = (value, finish = null) => send({ choices: [{ index: 0, delta: value, finish_reason: finish }] });
    response.write(': prefill\n\n');
    delta({ role: 'assistant', content: '' });
    if (body.return_progress)
      send({ choices: [{ index: 0, delta: {}, finish_reason: null }], prompt_progress: { processed: 37, total: 100 } });
    await sleep(plan.before ?? 0);
    let tokens = 0;
    const pause = plan.pause ?? 1;
    for (const piece of plan.reasoning ?? []) {
      if (!open) return;
      delta({ reasoning_content: piece });
      ++tokens;
      await sleep(8);
    }
    for (const [index, piece] of (plan.content ?? []).entries()) {
      if (!open) return;
      delta({ content: piece });
      ++tokens;
      if (pause > 1 || index % 50 === 0) await sleep(plan.batchPause ?? pause);
    }
    if (plan.call) {
      delta({
        tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: plan.call.name, arguments: '' } }],
      });
      for (const piece of plan.call.args) delta({ tool_calls: [{ index: 0, function: { arguments: piece } }] });
    }
    if (plan.error) {
      send({ error: { message: plan.error, type: 'server_error' } });
      return response.end();
    }
    if (plan.drop) {
      await sleep(100);
      return response.destroy();
    }
    delta({}, plan.finish ?? (plan.call ? 'tool_calls' : 'stop'));
    const prompt = JSON.stringify(body.messages).length >> 2;
    send({
      choices: [],
      usage: {
        prompt_tokens: prompt,
        completion_tokens: tokens,
        total_tokens: prompt + tokens,
        prompt_tokens_details: { cached_tokens: 17 },
      },
      timings: {
        prompt_n: prompt,
        prompt_per_second: 900,
        predicted_n: tokens,
        predicted_per_second: 42.25,
        cache_n: 17,
      },
    });
    response.end('data: [DONE]\n\n');
  }

  const server = createServer(async (request, response) => {
    const json = (value, status = 200) => {
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(value));
    };
    if (request.url === '/') {
      response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' });
      return response.end(readFileSync(page));
    }
    if (state.failing) return request.socket.destroy();
    if (request.url === '/health') return json({ status: 'ok' });
    if (key && request.headers.authorization !== `Bearer ${key}`) {
      return json(
        {
          error: { message: 'The API key is missing or wrong.', type: 'authentication_error', code: 'invalid_api_key' },
        },
        401,
      );
    }
    if (request.url === '/v1/models')
      return json({
        object: 'list',
        data: models.map((id) => ({ id, object: 'model', status: state.loading ? 'loading' : 'ready' })),
      });
    if (request.url === '/props') {
      return json({
        model: models[0],
        context_tokens: contextTokens,
        default_sampling: { temperature: 0.699999988079071, top_k: 20 },
        supports_thinking: true,
        supports_tools: true,
      });
    }
    if (request.url === '/v1/chat/completions' && request.method === 'POST') {
      let text = '';
      for await (const piece of request) text += piece;
      return chat(request, response, JSON.parse(text));
    }
    return json({ error: { message: `There is nothing at ${request.url}.`, type: 'invalid_request_error' } }, 404);
  });
  return new Promise((resolve) => {
    server.listen(port, '127.0.0.1', () =>
      resolve({
        state,
        url: `http://127.0.0.1:${server.address().port}/`,
        close: () => {
          server.closeAllConnections();
          server.close();
        },
      }),
    );
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const mock = await startMock({ port: Number(process.argv[2] ?? 8123), models: ['pocket', 'larger'] });
  console.log(mock.url);
}
