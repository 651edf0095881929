// What the page asks of the server.

import { eventsOf } from './sse.js';

const KEY = 'godwit.key';

const CHATS = '/v1/chat/completions';

// kind: 'unreachable', 'broken' (it ended in the middle; isCut: the server did not say why),
// 'too_long' (with `promptTokens` and `contextTokens`), or by its status 'key', 'busy', 'later',
// 'refused', 'server'. Where the server says so: retryAfter, in seconds, and progress, from 0 to 1,
// while it loads the model.
export class ApiError extends Error {
  constructor(kind, message, { status = 0, retryAfter = 0, ...more } = {}) {
    super(message);
    Object.assign(this, { kind, status, retryAfter }, more);
  }
}

let key = readKey();
let model = '';

// The model whose tokens are counted, of a server that has several.
export function setModel(value) {
  model = value;
}

export function setKey(value) {
  key = value;
  try {
    sessionStorage.setItem(KEY, value);
  } catch {
    // Blocked: known until the page is left.
  }
}

function readKey() {
  try {
    return sessionStorage.getItem(KEY) ?? '';
  } catch {
    return '';
  }
}

// What the server is and what may be asked of it. model: of several; empty: its first.
export async function getProperties(model) {
  try {
    return await (await ask(model ? `/props?model=${encodeURIComponent(model)}` : '/props')).json();
  } catch (error) {
    if (error.status !== 404) throw error;
    // The server may have other models than it had.
    if (model) return getProperties('');
    const { data } = await (await ask('/v1/models')).json();
    return { model: data[0].id, n_ctx: data[0].meta?.n_ctx_train ?? 0 };
  }
}

// Of a text by itself, without what a template puts around it.
export async function countTokens(content, signal) {
  const response = await ask('/tokenize', {
    method: 'POST', body: JSON.stringify({ content, ...(model && { model }) }), signal,
  });
  return (await response.json()).tokens.length;
}

// What a request would take, in each way of answering it: the first plan is the way it asks for.
export async function planOf(request, signal) {
  const response = await ask('/v1/plan', {
    method: 'POST', body: JSON.stringify(request), signal,
  });
  return response.json();
}

// The chunks of a completion, to its end; an ApiError where it has none. place: its `id` becomes
// that of the latest event.
export async function* complete(request, place, signal) {
  yield* chunksOf(await ask(CHATS, {
    method: 'POST', body: JSON.stringify(request), signal,
  }), place, signal);
}

// The chunks behind a place, of a completion whose connection broke.
export async function* goOn(place, signal) {
  yield* chunksOf(await ask(pathOf(place), {
    headers: { 'Last-Event-ID': place.id }, signal,
  }), place, signal);
}

// Ends an answer that the server would go on with for a while.
export function cancel(place) {
  if (place.id) ask(`${pathOf(place)}/cancel`, { method: 'POST', body: '{}' }).catch(() => {});
}

// The id of an event is that of its answer, a colon and a number.
const pathOf = ({ id }) => `${CHATS}/${encodeURIComponent(id.slice(0, id.lastIndexOf(':')))}`;

async function* chunksOf(response, place, signal) {
  try {
    for await (const { id, data } of eventsOf(response.body)) {
      if (/:\d+$/.test(id)) place.id = id;
      if (data === '[DONE]') return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new ApiError('broken', chunk.error.message);
      yield chunk;
    }
  } catch (error) {
    if (error instanceof ApiError || signal.aborted) throw error;
    throw new ApiError('broken', 'The connection to the server was lost.', { isCut: true });
  }
  throw new ApiError('broken', 'The server closed the connection too early.', { isCut: true });
}

async function ask(path, options = {}) {
  const headers = { 'Content-Type': 'application/json', ...options.headers };
  if (key) headers.Authorization = `Bearer ${key}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError('unreachable', 'The server cannot be reached.');
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

async function errorOf(response) {
  const { status } = response;
  const retryAfter = Number(response.headers.get('Retry-After')) || 0;
  let body = {};
  try {
    body = await response.json();
  } catch {
    // Not the server itself, but something before it.
  }
  const { error = {}, progress } = body;
  const message = error.message || `The server answered with status ${status}.`;
  const facts = { status, retryAfter, ...(typeof progress === 'number' && { progress }) };
  if (error.code !== 'context_length_exceeded') {
    return new ApiError(kindOf(status, retryAfter), message, facts);
  }
  return new ApiError('too_long', message,
    { ...facts, promptTokens: error.n_prompt_tokens, contextTokens: error.n_ctx });
}

function kindOf(status, retryAfter) {
  if (status === 401) return 'key';
  if (status === 429) return 'busy';
  if (status === 503 && retryAfter > 0) return 'later';
  return status >= 500 ? 'server' : 'refused';
}
