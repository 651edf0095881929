// Finds out what the server is, until it says so, and shows how that goes.

import { getProperties } from './api.js';
import { el } from './dom.js';
import { isLeaving } from './leaving.js';
import { noticeOf, sentenceOf } from './notice.js';

const LOADING_MS = 500;

export class Connection {
  #banner;
  #actions;
  #loading = null;  // {bar, fill, words} while the model is being loaded
  #timer = 0;

  // actions: {model() (the chosen one of several, or ''), onProperties(properties), askKey()}
  constructor(banner, actions) {
    this.#banner = banner;
    this.#actions = actions;
  }

  async connect() {
    clearTimeout(this.#timer);
    let properties;
    try {
      properties = await getProperties(this.#actions.model());
    } catch (error) {
      if (!isLeaving()) this.#showTrouble(error);
      return;
    }
    this.#loading = null;
    this.#banner.replaceChildren();
    if (properties.chat_template === false) {
      this.#banner.append(
        noticeOf('This model has no chat template, so it cannot chat.'));
    }
    this.#actions.onProperties(properties);
  }

  #showTrouble(error) {
    if (error.progress !== undefined) return this.#showLoading(error.progress);
    this.#loading = null;
    if (error.kind === 'key') {
      const { askKey } = this.#actions;
      this.#banner.replaceChildren(noticeOf(sentenceOf(error), { 'Enter the key': askKey }));
      if (!document.querySelector('dialog[open]')) askKey();
    } else if (error.kind === 'later') {
      this.#banner.replaceChildren(noticeOf(`The server is not ready: ${sentenceOf(error)} ` +
        `Trying again every ${error.retryAfter} s.`, {}, { isError: false }));
      this.#again(error.retryAfter * 1000);
    } else {
      const again = () => {
        this.#banner.replaceChildren();
        this.connect();
      };
      this.#banner.replaceChildren(noticeOf(sentenceOf(error), { 'Try again': again }));
    }
  }

  #showLoading(progress) {
    const percent = Math.floor(100 * progress);
    if (!this.#loading) {
      const fill = el('span', { className: 'part read' });
      const words = el('p', { className: 'reading-words' });
      const bar = el('div', { className: 'track', role: 'progressbar',
        'aria-label': 'Model loaded', 'aria-valuemin': 0, 'aria-valuemax': 100 }, fill);
      this.#loading = { bar, fill, words };
      this.#banner.replaceChildren(el('div', { className: 'notice loading' }, words, bar));
    }
    const { bar, fill, words } = this.#loading;
    bar.setAttribute('aria-valuenow', percent);
    fill.style.width = `${percent}%`;
    words.textContent = `The model is being loaded: ${percent} %`;
    this.#again(LOADING_MS);
  }

  #again(ms) {
    this.#timer = setTimeout(() => this.connect(), ms);
  }
}
