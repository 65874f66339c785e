// The libraries that programs use, against scripted answers (SCRIPTED_URL) and the model in the box (BOX_URL).
import Anthropic from '@anthropic-ai/sdk';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import assert from 'node:assert/strict';
import { test } from 'node:test';

const SCRIPTED = process.env.SCRIPTED_URL;
const BOX = process.env.BOX_URL;
const anthropic = (url) => new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 });
const openai = (url) => new OpenAI({ baseURL: url + '/v1', apiKey: 'none', maxRetries: 0 });
const ollama = (url) => new Ollama({ host: url });

const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const about = { name: 'get_weather', description: 'Weather of a city' };
const said = (content) => [{ role: 'user', content }];
const story = 'Tell me a story about a fox.';

function near(some, others) {
  assert.equal(some.length, others.length);
  some.forEach((x, i) => assert.ok(Math.abs(x - others[i]) < 2e-3, `${i}: ${x} and ${others[i]}`));
}

async function collect(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return pieces;
}

// ---- Anthropic ----

const message = (content, more = {}) => ({ model: 'any', max_tokens: 200, messages: said(content), ...more });

test('anthropic: text, whole and streamed', async () => {
  const client = anthropic(SCRIPTED);
  const whole = await client.messages.create(message('hello'));
  assert.equal(whole.content[0].text, 'One, two, three.');
  assert.equal(whole.stop_reason, 'end_turn');
  assert.ok(whole._request_id.startsWith('req_'));
  const stream = client.messages.stream(message('hello'));
  const texts = [];
  stream.on('text', (text) => texts.push(text));
  const final = await stream.finalMessage();
  assert.equal(texts.join(''), 'One, two, three.');
  assert.deepEqual(final.usage, whole.usage);
  const counted = await client.messages.countTokens({ model: 'any', messages: said('hello') });
  assert.equal(counted.input_tokens, whole.usage.input_tokens + whole.usage.cache_read_input_tokens);
});

test('anthropic: a turn with tools', async () => {
  const client = anthropic(SCRIPTED);
  const tools = [{ ...about, input_schema: schema }];
  const first = await client.messages.stream(message('WEATHER', { tools })).finalMessage();
  assert.equal(first.stop_reason, 'tool_use');
  const uses = first.content.filter((block) => block.type === 'tool_use');
  assert.deepEqual(uses.map((use) => use.input), [{ city: 'Rome' }, { city: 'Oslo' }]);
  const results = uses.map((use) => ({ type: 'tool_result', tool_use_id: use.id, content: 'rain' }));
  const messages = [...said('WEATHER'), { role: 'assistant', content: first.content }, { role: 'user', content: results }];
  const last = await client.messages.create({ model: 'any', max_tokens: 100, tools, messages });
  assert.equal(last.content[0].text, 'It rains in Rome.');
});

test('anthropic: thinking', async () => {
  const thinking = { type: 'enabled', budget_tokens: 1024 };
  const final = await anthropic(SCRIPTED).messages.stream(message('PONDER', { thinking, max_tokens: 2000 })).finalMessage();
  assert.deepEqual(final.content.map((block) => block.type), ['thinking', 'text']);
  assert.match(final.content[0].thinking, /I wonder/);
  assert.ok(final.content[0].signature);
});

test('anthropic: models', async () => {
  const models = await collect(anthropic(SCRIPTED).models.list());
  assert.equal(models[0].display_name, 'scripted');
  const one = await anthropic(SCRIPTED).models.retrieve('scripted');
  assert.deepEqual([one.id, one.type], ['scripted', 'model']);
  assert.ok(Date.parse(one.created_at) > 0);
});

test('anthropic: errors and leaving', async () => {
  const client = anthropic(SCRIPTED);
  await assert.rejects(client.messages.create(message('x', { temperature: 'hot' })), (error) => {
    assert.ok(error instanceof Anthropic.BadRequestError);
    assert.equal(error.error.error.type, 'invalid_request_error');
    return true;
  });
  const stream = client.messages.stream(message('SLOW', { max_tokens: 1000 }));
  stream.once('text', () => stream.abort());
  await assert.rejects(stream.finalMessage(), Anthropic.APIUserAbortError);
});

test('anthropic: the model in the box', async () => {
  const final = await anthropic(BOX).messages.stream(message(story, { max_tokens: 40 })).finalMessage();
  assert.equal(final.stop_reason, 'max_tokens');
  assert.ok(final.content[0].text.length > 20);
  const tools = [{ ...about, input_schema: schema }];
  const tool_choice = { type: 'tool', name: 'get_weather' };
  const called = await anthropic(BOX).messages.create(message('What is the weather in Rome?', { tools, tool_choice }));
  assert.equal(called.content.at(-1).name, 'get_weather');
  assert.equal(typeof called.content.at(-1).input.city, 'string');
});

// ---- OpenAI ----

test('openai: chat, completions, models', async () => {
  const client = openai(SCRIPTED);
  const whole = await client.chat.completions.create({ model: 'any', messages: said('hello') });
  assert.equal(whole.choices[0].message.content, 'One, two, three.');
  const stream = client.chat.completions.stream({ model: 'any', messages: said('WEATHER'),
    tools: [{ type: 'function', function: { ...about, parameters: schema } }], stream_options: { include_usage: true } });
  const final = await stream.finalChatCompletion();
  assert.deepEqual(final.choices[0].message.tool_calls.map((call) => JSON.parse(call.function.arguments)),
    [{ city: 'Rome' }, { city: 'Oslo' }]);
  assert.ok(final.usage.total_tokens > 0);
  const pieces = await collect(await openai(BOX).completions.create({ model: 'any', prompt: 'Once', max_tokens: 8, stream: true }));
  assert.ok(pieces.map((piece) => piece.choices[0]?.text ?? '').join('').length > 0);
  assert.equal((await client.models.list()).data[0].id, 'scripted');
});

test('openai: chat errors and leaving', async () => {
  const client = openai(SCRIPTED);
  await assert.rejects(client.chat.completions.create({ model: 'any', messages: said('x'), temperature: 'hot' }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.type, 'invalid_request_error');
    assert.match(error.message, /temperature/);
    return true;
  });
  await assert.rejects(client.chat.completions.create({ model: 'any', messages: said('BREAK') }), OpenAI.InternalServerError);
  const broken = await client.chat.completions.create({ model: 'any', messages: said('BREAK'), stream: true });
  await assert.rejects(collect(broken), /the device is gone/);
  const stream = client.chat.completions.stream({ model: 'any', messages: said('SLOW') });
  stream.once('content', () => stream.abort());
  await assert.rejects(stream.finalChatCompletion(), OpenAI.APIUserAbortError);
});

test('openai: several answers, log-probabilities, a form', async () => {
  const several = await openai(SCRIPTED).chat.completions.create({ model: 'any', messages: said('hello'), n: 3 });
  assert.deepEqual(several.choices.map((choice) => [choice.index, choice.message.content]),
    [0, 1, 2].map((index) => [index, 'One, two, three.']));
  const client = openai(BOX);
  const scored = await client.chat.completions.create({ model: 'any', messages: said(story), max_tokens: 5, logprobs: true, top_logprobs: 2 });
  const scores = scored.choices[0].logprobs.content;
  assert.equal(scores.map((score) => score.token).join(''), scored.choices[0].message.content);
  for (const score of scores) assert.ok(score.logprob <= 0 && score.top_logprobs.length === 2);
  const strict = { type: 'object', properties: { city: { enum: ['Rome', 'Oslo'] } }, required: ['city'], additionalProperties: false };
  const parsed = await client.chat.completions.parse({ model: 'any', messages: said('A city as JSON'), max_tokens: 200,
    response_format: { type: 'json_schema', json_schema: { name: 'city', strict: true, schema: strict } } });
  assert.ok(['Rome', 'Oslo'].includes(parsed.choices[0].message.parsed.city));
});

test('openai: whole completions', async () => {
  const client = openai(BOX);
  const prompts = ['Once upon a time', 'The dog', 'A bear'];
  const many = await client.completions.create({ model: 'any', prompt: prompts, max_tokens: 6, temperature: 0 });
  const alone = await Promise.all(prompts.map((prompt) => client.completions.create({ model: 'any', prompt, max_tokens: 6, temperature: 0 })));
  assert.deepEqual(many.choices.map((choice) => choice.text), alone.map((one) => one.choices[0].text));
  assert.equal(many.usage.prompt_tokens, alone.reduce((sum, one) => sum + one.usage.prompt_tokens, 0));
  const echoed = await client.completions.create({ model: 'any', prompt: 'Once', max_tokens: 4, echo: true, logprobs: 1 });
  assert.ok(echoed.choices[0].text.startsWith('Once'));
  assert.equal(echoed.choices[0].logprobs.tokens.join(''), echoed.choices[0].text);
  await assert.rejects(client.completions.create({ model: 'any', prompt: [] }), OpenAI.BadRequestError);
  await assert.rejects(client.completions.create({ model: 'any', prompt: 'a', suffix: 'b' }), /filling in the middle/);
  await assert.rejects(openai(SCRIPTED).completions.create({ model: 'any', prompt: ['hello', 'BREAK'] }), OpenAI.InternalServerError);
});

test('openai: responses', async () => {
  const client = openai(SCRIPTED);
  const whole = await client.responses.create({ model: 'any', input: 'hello', instructions: 'Be brief.' });
  assert.equal(whole.output_text, 'One, two, three.');
  const types = [];
  const stream = client.responses.stream({ model: 'any', input: 'PONDER', reasoning: { effort: 'high', summary: 'auto' },
    previous_response_id: whole.id });
  for await (const event of stream) types.push(event.type);
  const final = await stream.finalResponse();
  assert.equal(final.output_text.trim(), 'The answer is 42.');
  assert.match(final.output[0].summary[0].text, /I wonder/);
  assert.equal(types.at(-1), 'response.completed');
  assert.equal((await client.responses.retrieve(whole.id)).output_text, whole.output_text);
  assert.equal((await client.responses.inputItems.list(whole.id)).data.length, 1);
  await client.responses.delete(whole.id);
  await assert.rejects(client.responses.retrieve(whole.id), OpenAI.NotFoundError);
});

test('openai: responses with tools', async () => {
  const client = openai(SCRIPTED);
  const tools = [{ type: 'function', strict: false, ...about, parameters: schema }, { type: 'web_search' },
    { type: 'custom', name: 'apply_patch', description: 'Edits files' }];
  const first = await client.responses.stream({ model: 'any', input: 'WEATHER', tools }).finalResponse();
  const calls = first.output.filter((item) => item.type === 'function_call');
  assert.deepEqual(calls.map((call) => JSON.parse(call.arguments)), [{ city: 'Rome' }, { city: 'Oslo' }]);
  const outputs = calls.map((call) => ({ type: 'function_call_output', call_id: call.call_id, output: 'rain' }));
  const last = await client.responses.create({ model: 'any', tools, input: outputs, previous_response_id: first.id });
  assert.equal(last.output_text, 'It rains in Rome.');
  const patch = await client.responses.create({ model: 'any', tools, input: 'PATCH' });
  assert.match(patch.output[0].input, /^\*\*\* Begin Patch\n/);
});

test('openai: errors, leaving, a form for the answer', async () => {
  const client = openai(SCRIPTED);
  await assert.rejects(client.responses.create({ model: 'any', input: 'x', temperature: 'hot' }), OpenAI.BadRequestError);
  const stream = await client.responses.create({ model: 'any', input: 'SLOW', stream: true });
  for await (const event of stream) if (event.type === 'response.output_text.delta') break;
  const format = { type: 'json_schema', name: 'city', schema };
  const answer = await openai(BOX).responses.create({ model: 'any', input: 'A city as JSON', text: { format }, max_output_tokens: 200 });
  if (answer.status === 'completed') assert.equal(typeof JSON.parse(answer.output_text).city, 'string');
});

test('openai: embeddings', async () => {
  const client = openai(BOX);
  const input = ['The fox sleeps.', 'A bear wakes up.'];
  const { data, usage } = await client.embeddings.create({ model: 'any', input }); // which asks for base64
  assert.deepEqual(data.map((one) => one.index), [0, 1]);
  assert.equal(usage.total_tokens, usage.prompt_tokens);
  const floats = await client.embeddings.create({ model: 'any', input, encoding_format: 'float' });
  for (const i of [0, 1]) near(data[i].embedding, floats.data[i].embedding);
  const short = await client.embeddings.create({ model: 'any', input: input[0], dimensions: 4 });
  assert.equal(short.data[0].embedding.length, 4);
  await assert.rejects(client.embeddings.create({ model: 'any', input: '' }), OpenAI.BadRequestError);
});

// ---- Ollama ----

test('ollama: chat and generate', async () => {
  const client = ollama(SCRIPTED);
  const whole = await client.chat({ model: 'any', messages: said('hello') });
  assert.equal(whole.message.content, 'One, two, three.');
  const pieces = await collect(await client.chat({ model: 'any', messages: said('PONDER'), think: true, stream: true }));
  assert.match(pieces.map((piece) => piece.message.thinking ?? '').join(''), /I wonder/);
  assert.ok(pieces.at(-1).eval_count > 0);
  const tools = [{ type: 'function', function: { ...about, parameters: schema } }];
  const called = await client.chat({ model: 'any', messages: said('WEATHER'), tools });
  assert.deepEqual(called.message.tool_calls.map((call) => call.function.arguments), [{ city: 'Rome' }, { city: 'Oslo' }]);
  const first = await client.generate({ model: 'any', prompt: 'hello' });
  const second = await client.generate({ model: 'any', prompt: 'hello', context: first.context });
  assert.ok(second.prompt_eval_count > first.prompt_eval_count);
  const json = await ollama(BOX).generate({ model: 'any', prompt: 'A city as JSON', format: schema, options: { num_predict: 200 } });
  if (json.done_reason === 'stop') assert.equal(typeof JSON.parse(json.response).city, 'string');
});

test('ollama: embeddings', async () => {
  const client = ollama(BOX);
  const both = await client.embed({ model: 'any', input: ['The fox sleeps.', 'A bear wakes up.'], truncate: true });
  assert.ok(both.prompt_eval_count > 0);
  const one = await client.embed({ model: 'any', input: 'A bear wakes up.' });
  near(one.embeddings[0], both.embeddings[1]);
  near((await client.embeddings({ model: 'any', prompt: 'A bear wakes up.' })).embedding, one.embeddings[0]);
  await assert.rejects(client.embed({ model: 'any', input: ['a', ''] }), /input/);
});

test('ollama: the model, errors, leaving', async () => {
  const client = ollama(SCRIPTED);
  assert.equal((await client.list()).models[0].name, 'scripted');
  assert.equal((await client.ps()).models.length, 1);
  assert.ok((await client.show({ model: 'any' })).capabilities.includes('tools'));
  assert.match((await client.version()).version, /^\d+\./);
  const stream = await client.chat({ model: 'any', messages: said('SLOW'), stream: true });
  let pieces = 0;
  await assert.rejects(async () => {
    for await (const piece of stream) if (++pieces === 3) stream.abort();
  }, { name: 'AbortError' });
});

test('ollama: streams of generate and of tools', async () => {
  const client = ollama(SCRIPTED);
  const pieces = await collect(await client.generate({ model: 'any', prompt: 'hello', stream: true }));
  assert.equal(pieces.map((piece) => piece.response).join(''), 'One, two, three.');
  assert.ok(pieces.at(-1).done && pieces.at(-1).context.length > 0);
  const tools = [{ type: 'function', function: { ...about, parameters: schema } }];
  const called = await collect(await client.chat({ model: 'any', messages: said('WEATHER'), tools, stream: true }));
  const calls = called.flatMap((piece) => piece.message.tool_calls ?? []);
  assert.deepEqual(calls.map((call) => call.function.arguments), [{ city: 'Rome' }, { city: 'Oslo' }]);
  assert.match(called.map((piece) => piece.message.content).join(''), /Let me look\./);
  const stream = await client.generate({ model: 'any', prompt: 'SLOW', stream: true });
  await assert.rejects(async () => {
    for await (const piece of stream) if (piece.response) stream.abort();
  }, { name: 'AbortError' });
});
