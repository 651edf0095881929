// How long the first word of an answer would take, asked of the server before a message is sent,
// once nothing was typed for a while.

import { planOf } from './api.js';
import { duration, whole } from './format.js';

const QUIET_MS = 800;

export class Price {
  words = '';
  #timer = 0;
  #abort = null;
  #onChange;

  // onChange(): the words are other than before.
  constructor(onChange) {
    this.#onChange = onChange;
  }

  // request(): as it would be sent; null: nothing is to be asked now.
  ask(request) {
    this.forget();
    this.#timer = setTimeout(() => this.#askNow(request()), QUIET_MS);
  }

  // What was asked is no longer wanted. A probe of the server ends with that.
  forget() {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#abort = null;
    this.words = '';
  }

  async #askNow(request) {
    if (!request) return;
    const abort = new AbortController();
    this.#abort = abort;
    try {
      const { plans } = await planOf(request, abort.signal);
      if (this.#abort !== abort) return;
      this.words = wordsOf(plans[0]);
      this.#onChange();
    } catch {
      // The message is sent all the same.
    }
  }
}

function wordsOf({ refused, first_token_s: seconds, cached_tokens: cached }) {
  if (refused) return '';
  const kept = cached > 0 ? ` (${whole(cached)} tokens cached)` : '';
  return `first word after about ${duration(1000 * seconds)}${kept}`;
}
