// One small model behind POST /v1/chat/completions, as a provider without tools and without response formats has it.
//
//   node server.mjs MODEL.gguf PORT THREADS        GET /v1/models answers as soon as the model is loaded
//
// It lies in the folder where node-llama-cpp is installed. Only the binaries that npm brought are used: nothing is
// built and nothing is downloaded. One request is served at a time, the others wait. What the model was told and what
// it said is printed, one line of JSON for each request.

import { createServer } from "node:http";
import { basename } from "node:path";
import { Template } from "@huggingface/jinja";
import { LlamaCompletion, LlamaLogLevel, getLlama } from "node-llama-cpp";

const CONTEXT_TOKENS = 3072;
const MOST_TOKENS = 256; // of an answer whose request names no number
const LARGEST_BODY = 1_000_000; // bytes
// What a provider of this kind does not know. A request that has one is refused, not answered without it.
const UNKNOWN = ["tools", "tool_choice", "functions", "function_call", "response_format"];
const ROLES = ["system", "user", "assistant"];

class Refused extends Error {
  constructor(message, status = 400, code = "invalid_request") {
    super(message);
    Object.assign(this, { status, code });
  }
}

// --- the model ---

async function load(path, threads) {
  const llama = await getLlama({
    gpu: false, build: "never", skipDownload: true, progressLogs: false, maxThreads: threads, logLevel: LlamaLogLevel.error,
  });
  const model = await llama.loadModel({ modelPath: path });
  const context = await model.createContext({ contextSize: CONTEXT_TOKENS, threads });
  const sequence = context.getSequence();
  const completion = new LlamaCompletion({ contextSequence: sequence });
  return { name: basename(path, ".gguf"), model, sequence, completion, template: new Template(template(model)) };
}

function template(model) {
  return model.fileInfo.metadata.tokenizer.chat_template;
}

/** The conversation as the model's own chat template writes it. Marks in a text are marks, as in most servers. */
function prompt({ model, template }, messages) {
  const said = template.render({ messages: messages.map(plain), add_generation_prompt: true });
  const tokens = model.tokenize(said, true);
  if (tokens.length >= CONTEXT_TOKENS)
    throw new Refused(`The prompt has ${tokens.length} tokens, the model reads ${CONTEXT_TOKENS}.`, 400, "context_length_exceeded");
  return tokens;
}

function plain({ role, content }) {
  if (!ROLES.includes(role)) throw new Refused(`This model knows the roles ${ROLES.join(", ")}.`);
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  if (!Array.isArray(parts) || parts.some((part) => part.type !== "text"))
    throw new Refused("This model reads text only.");
  return { role, content: parts.map((part) => part.text).join("") };
}

/** Asks the model; `heard` gets the text piece by piece. */
async function complete(loaded, asked, heard, signal) {
  const tokens = prompt(loaded, asked.messages);
  const most = Math.min(asked.max_completion_tokens ?? asked.max_tokens ?? MOST_TOKENS, CONTEXT_TOKENS - tokens.length);
  const began = performance.now();
  // What is left of the last prompt would save time, and change the last bits of what is computed: the same request
  // would not get the same answer.
  await loaded.sequence.clearHistory();
  const { response, metadata } = await loaded.completion.generateCompletionWithMeta(tokens, {
    maxTokens: most, temperature: asked.temperature ?? 1, topP: asked.top_p ?? 0.95, seed: asked.seed ?? 0,
    minP: 0.05, repeatPenalty: false,
    customStopTriggers: [asked.stop ?? []].flat(), onTextChunk: heard, disableContextShift: true,
    signal, stopOnAbortSignal: true,
  });
  const said = loaded.model.tokenize(response).length;
  const usage = { prompt_tokens: tokens.length, completion_tokens: said, total_tokens: tokens.length + said };
  const seconds = (performance.now() - began) / 1000;
  // Nobody has got what a client did not wait for.
  if (!signal.aborted) console.log(JSON.stringify({ messages: asked.messages, text: response, usage, seconds }));
  return { text: response, finish: metadata.stopReason === "maxTokens" ? "length" : "stop", usage };
}

// --- HTTP ---

let waiting = Promise.resolve();

function inTurn(work) {
  const mine = waiting.then(work);
  waiting = mine.catch(() => {});
  return mine;
}

async function read(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > LARGEST_BODY) throw new Refused("The request is too large.", 413, "payload_too_large");
    chunks.push(chunk);
  }
  const asked = parsed(Buffer.concat(chunks).toString());
  const unknown = UNKNOWN.find((field) => asked[field] != null);
  if (unknown) throw new Refused(`This model has no '${unknown}'.`, 400, "unsupported_parameter");
  if (!Array.isArray(asked.messages) || !asked.messages.length) throw new Refused("'messages' must be a list.");
  return asked;
}

function parsed(text) {
  try {
    return Object(JSON.parse(text));
  } catch {
    throw new Refused("The request is not JSON.");
  }
}

async function chat(loaded, request, response) {
  const asked = await read(request);
  const leaving = new AbortController();
  response.on("close", () => leaving.abort());
  const id = `chatcmpl-${process.hrtime.bigint()}`;
  const head = { id, created: Math.floor(Date.now() / 1000), model: loaded.name };
  const answer = asked.stream ? streamed : buffered;
  await inTurn(() => leaving.signal.aborted || answer(loaded, asked, head, response, leaving.signal));
}

async function buffered(loaded, asked, head, response, signal) {
  const { text, finish, usage } = await complete(loaded, asked, undefined, signal);
  const message = { role: "assistant", content: text };
  json(response, 200, { ...head, object: "chat.completion", choices: [{ index: 0, message, finish_reason: finish }], usage });
}

async function streamed(loaded, asked, head, response, signal) {
  prompt(loaded, asked.messages); // refused before the first byte, if at all
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (more) =>
    response.write(`data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", ...more })}\n\n`);
  const delta = (delta, finish_reason = null) => send({ choices: [{ index: 0, delta, finish_reason }] });
  delta({ role: "assistant", content: "" });
  const { finish, usage } = await complete(loaded, asked, (content) => delta({ content }), signal);
  delta({}, finish);
  if (asked.stream_options?.include_usage) send({ choices: [], usage });
  response.end("data: [DONE]\n\n");
}

function json(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function failed(response, error) {
  const known = error instanceof Refused;
  if (!known) console.error(error);
  if (response.headersSent) return response.destroy();
  const { status = 500, code = "internal", message } = known ? error : { message: "The model failed." };
  json(response, status, { error: { message, type: "invalid_request_error", param: null, code } });
}

const [path, port, threads] = process.argv.slice(2);
const loaded = await load(path, Number(threads));
const models = { object: "list", data: [{ id: loaded.name, object: "model", created: 0, owned_by: "local" }] };
const routes = {
  "GET /v1/models": async (_, response) => json(response, 200, models),
  "POST /v1/chat/completions": (request, response) => chat(loaded, request, response),
};

createServer((request, response) => {
  const route = routes[`${request.method} ${request.url.split("?")[0]}`];
  const answered = route ? route(request, response) : Promise.reject(new Refused("There is no such path.", 404, "not_found"));
  answered.catch((error) => failed(response, error));
}).listen(Number(port), "127.0.0.1");
