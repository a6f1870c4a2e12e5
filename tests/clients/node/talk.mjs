// Talks to a sidecar with the npm client and prints what it got as one JSON document.
// Usage: node talk.mjs BASE_URL API_KEY SECRET
import OpenAI from 'openai';

const [baseURL, apiKey, secret] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 2, timeout: 20_000 });
const messages = [{ role: 'user', content: `my key is ${secret}` }];
const tools = [{ type: 'function', function: { name: 'search', parameters: { type: 'object', properties: {} } } }];

async function streamed(model, extra = {}) {
  const got = { text: '', finish: null, calls: [], error: null };
  try {
    for await (const chunk of await client.chat.completions.create({ model, messages, stream: true, ...extra })) {
      const choice = chunk.choices[0];
      got.text += choice?.delta?.content ?? '';
      got.finish = choice?.finish_reason ?? got.finish;
      for (const call of choice?.delta?.tool_calls ?? []) {
        got.calls[call.index] = (got.calls[call.index] ?? '') + (call.function?.arguments ?? '');
      }
    }
  } catch (error) {
    got.error = { name: error.constructor.name, code: error.code, status: error.status ?? null };
  }
  return got;
}

async function failed(ask) {
  try {
    await ask();
    return null;
  } catch (error) {
    return { name: error.constructor.name, code: error.code, param: error.param, status: error.status };
  }
}

const buffered = await client.chat.completions.create({ model: 'm', messages });
const called = await client.chat.completions.create({ model: 'm', messages, tools });
const helper = client.chat.completions.stream({ model: 'm', messages });

console.log(
  JSON.stringify({
    buffered: buffered.choices[0].message.content,
    called: called.choices[0].message.tool_calls.map((call) => call.function.arguments),
    streamed: await streamed('m'),
    streamedCalls: await streamed('m', { tools }),
    helper: (await helper.finalChatCompletion()).choices[0].message.content,
    blocked: await failed(() =>
      client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'forbidden-topic' }] }),
    ),
    blockedStream: await streamed('says-forbidden-topic'),
    filteredStream: await streamed('says-quiet-topic'),
    limited: await failed(() =>
      client.chat.completions.create({ model: 'status-429', messages }, { maxRetries: 0 }),
    ),
  }),
);
