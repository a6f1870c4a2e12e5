// Small agents with tools, written with the Vercel AI SDK and with the npm client; prints what they got as one document.
// Usage: node agent.mjs NATIVE_URL BRIDGED_URL API_KEY GIVEN, the last one JSON: system, ask, hi, secret.
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { z } from 'zod';

const [native, bridged, apiKey, json] = process.argv.slice(2);
const given = JSON.parse(json);
const names = ['send_mail', 'take_note'];
const result = (name, { to }) => `${name} done for ${to}, token ${given.secret}`;

function desk() {
  const calls = [];
  const use = (name) => (args) => {
    calls.push([name, args]);
    return result(name, args);
  };
  return { calls, use };
}

const inputSchema = z.object({ to: z.string(), text: z.string(), copies: z.number() });

function asked(model, ask, { calls, use } = desk(), offered = names) {
  const tools = Object.fromEntries(
    offered.map((name) => [name, tool({ description: name, inputSchema, execute: use(name) })]),
  );
  const errors = [];
  const onError = ({ error }) => errors.push(error);
  return { calls, errors, options: { model, system: given.system, prompt: ask, tools, stopWhen: stepCountIs(5), onError } };
}

const told = (error) => ({
  name: error.name ?? null,
  status: error.statusCode ?? null,
  message: error.message ?? String(error),
  code: error.data?.error?.code ?? error.error?.code ?? null,
  raw: JSON.stringify(error.value ?? error.data ?? error),
});

async function streamed(model, ask, offered = names) {
  const { calls, errors, options } = asked(model, ask, desk(), offered);
  const got = { text: '', deltas: 0, finish: null, thrown: null };
  for await (const part of streamText(options).fullStream) {
    if (part.type === 'text-delta') {
      got.text += part.text;
      got.deltas += 1;
    }
    if (part.type === 'finish') got.finish = part.finishReason;
    if (part.type === 'error') errors.push(part.error);
  }
  return { ...got, calls, error: errors.length ? told(errors[0]) : null };
}

async function whole(model, ask) {
  const { calls, options } = asked(model, ask);
  const { text } = await generateText(options);
  return { text, calls };
}

async function failed(ask) {
  try {
    await ask();
    return null;
  } catch (error) {
    return told(error);
  }
}

async function ran(client, stream) {
  const { calls, use } = desk();
  const tools = names.map((name) => ({
    type: 'function',
    function: {
      name,
      description: name,
      parameters: { type: 'object', properties: { to: { type: 'string' } } },
      parse: JSON.parse,
      function: use(name),
    },
  }));
  const messages = [
    { role: 'system', content: given.system },
    { role: 'user', content: given.ask },
  ];
  const runner = client.chat.completions.runTools({ model: stream ? 'npm-streamed' : 'npm', messages, tools, stream });
  return { text: await runner.finalContent(), calls };
}

const at = (url, key = apiKey) => createOpenAI({ baseURL: `${url}/v1`, apiKey: key });
const npm = new OpenAI({ baseURL: `${native}/v1`, apiKey });

console.log(
  JSON.stringify({
    responses: await streamed(at(native).responses('ai-responses'), given.ask),
    bridged: await streamed(at(bridged).responses('ai-bridged'), given.ask),
    chat: await streamed(at(native).chat('ai-chat'), given.ask),
    whole: await whole(at(native).responses('ai-whole'), given.ask),
    npm: await ran(npm, false),
    npmStreamed: await ran(npm, true),
    blocked: await streamed(at(native).responses('says-forbidden-topic'), given.hi, []),
    blockedBridged: await streamed(at(bridged).responses('says-forbidden-topic'), given.hi, []),
    cut: await streamed(at(native).responses('says-quiet-topic'), given.hi, []),
    cutBridged: await streamed(at(bridged).responses('says-quiet-topic'), given.hi, []),
    refused: await failed(() => whole(at(native).responses('ai-refused'), 'forbidden-topic')),
    wrongKey: await failed(() => whole(at(bridged, 'pk-other').responses('ai-refused'), given.hi)),
    tooLarge: await failed(() => whole(at(native).chat('ai-refused'), 'x'.repeat(100_001))),
  }),
);
