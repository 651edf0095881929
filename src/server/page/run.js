// One answer as it is written: a request, its chunks, and what becomes of it.

import { ApiError, cancel, complete, goOn } from './api.js';
import { isLeaving } from './leaving.js';

// How long the page looks for a server that has gone in the middle of an answer, and the most
// seconds between two tries.
const GIVE_UP_MS = 5 * 60 * 1000;
const MOST_PAUSE_S = 8;

// What the page shows of a run: `phase` is 'waiting' (for the server), 'later' (it is not ready,
// and `retryAt` says when it is asked again), 'lost' (as 'later', in the middle of the answer),
// 'reading' (the prompt, see `progress`) or 'writing'.
export class Run {
  phase = 'waiting';
  progress = null;
  message = '';
  loaded;  // from 0 to 1, where it is the model that is not there yet
  retryAt = 0;
  pieces = 0;  // of text that came, about as many as tokens
  #abort = new AbortController();
  #place = { id: '' };  // the latest event, for a server that keeps answers
  #lost = null;  // the error that cut the answer off, until it goes on
  #lostAt = 0;
  #tries = 0;
  #startedAt = 0;
  #firstAt = 0;
  #onChange;

  // onChange(): something of this or of the answer is other than before.
  constructor(answer, request, onChange) {
    this.answer = answer;
    this.request = request;
    this.#onChange = onChange;
  }

  stop() {
    cancel(this.#place);
    this.#abort.abort();
  }

  // The reader leaves the page: what came is kept.
  leave() {
    this.answer.finish = 'left';
    this.#abort.abort();
  }

  // Tokens a second, about, since the first came.
  get speed() {
    const ms = performance.now() - this.#firstAt;
    return this.pieces > 1 && ms > 0 ? ((this.pieces - 1) * 1000) / ms : 0;
  }

  // Ends when the answer has a `finish` or an `error`.
  async start() {
    const { answer } = this;
    while (!answer.finish && !answer.error) {
      try {
        await this.#ask();
      } catch (error) {
        if (this.#abort.signal.aborted) {
          answer.finish ??= 'stopped';
        } else if (isLeaving()) {
          answer.finish = 'left';
        } else if (this.#place.id && (this.#lost || error.isCut)) {
          await this.#afterCut(error);
        } else if (error.kind === 'later') {
          await this.#wait(error);
        } else {
          answer.error = errorOf(error);
        }
      }
    }
  }

  async #ask() {
    this.#set(this.#lost ? 'lost' : 'waiting');
    if (!this.#place.id) this.#startedAt = performance.now();
    const { signal } = this.#abort;
    const chunks = this.#place.id ? goOn(this.#place, signal)
      : complete(this.request, this.#place, signal);
    for await (const chunk of chunks) {
      this.#lost = null;
      this.#tries = 0;
      this.#take(chunk);
    }
    if (!this.answer.finish) {
      throw new ApiError('broken', 'The server ended the answer without giving a reason.');
    }
  }

  #take(chunk) {
    const { answer } = this;
    if (chunk.prompt_progress) {
      this.progress = chunk.prompt_progress;
      answer.progress = this.progress;
      this.#set('reading');
    }
    if (chunk.usage) answer.usage = chunk.usage;
    if (chunk.timings) answer.timings = chunk.timings;
    const choice = chunk.choices[0];
    if (!choice) return;
    const { reasoning_content: thought, content } = choice.delta;
    if (thought) this.#write('thought', thought);
    if (content) this.#write('content', content);
    if (choice.kv) answer.kv = choice.kv;
    if (choice.finish_reason) answer.finish = choice.finish_reason;
  }

  // field: of the answer, which grows.
  #write(field, text) {
    if (this.pieces === 0) {
      this.#firstAt = performance.now();
      this.answer.firstMs = this.#firstAt - this.#startedAt;
    }
    this.pieces += 1;
    this.answer[field] = (this.answer[field] ?? '') + text;
    this.#set('writing');
  }

  #set(phase) {
    this.phase = phase;
    this.#onChange();
  }

  // An answer that was cut off goes on where it stopped, if the server comes back and has kept it.
  async #afterCut(error) {
    if (!this.#lost) {
      this.#lost = error;
      this.#lostAt = Date.now();
    }
    const isGone = ['unreachable', 'later', 'busy', 'broken'].includes(error.kind);
    if (!isGone || Date.now() - this.#lostAt > GIVE_UP_MS) {
      // Servers that keep no answers do not know of it.
      const isKnown = error.status !== 404 && !isGone;
      this.answer.error = errorOf(isKnown ? new ApiError('broken', error.message) : this.#lost);
      return;
    }
    this.#tries += 1;
    const pause = error.retryAfter || Math.min(MOST_PAUSE_S, 2 ** (this.#tries - 1));
    await this.#wait({ ...error, message: this.#lost.message, retryAfter: pause }, 'lost');
  }

  // Until the server says that it may be asked again, or somebody stops it.
  #wait({ message, retryAfter, progress }, phase = 'later') {
    this.message = message;
    this.loaded = progress;
    this.retryAt = Date.now() + retryAfter * 1000;
    this.#set(phase);
    return new Promise((resolve) => {
      const { signal } = this.#abort;
      const timer = setTimeout(resolve, retryAfter * 1000);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        resolve();
      }, { once: true });
      if (signal.aborted) resolve();
    });
  }
}

function errorOf(error) {
  if (!(error instanceof ApiError)) return { kind: 'server', message: String(error) };
  const { kind, message, retryAfter, promptTokens, contextTokens } = error;
  return { kind, message, retryAt: Date.now() + retryAfter * 1000, promptTokens, contextTokens };
}
