// How far the prompt is read.

import { el } from './dom.js';
import { Foresight } from './foresight.js';
import { duration, percent, rate, tokens, whole } from './format.js';

export class ReadingBar {
  #cached = el('span', { className: 'part cached' });
  #read = el('span', { className: 'part read' });
  #words = el('p', { className: 'reading-words' });
  #track;
  #foresight = new Foresight();

  constructor() {
    this.#track = el('div', { className: 'track', role: 'progressbar', 'aria-label': 'Prompt read',
      'aria-valuemin': 0, 'aria-valuemax': 100 }, this.#cached, this.#read);
    this.element = el('div', { className: 'reading' }, this.#words, this.#track);
  }

  // progress: as the server says it, where `processed` has the cached ones, too.
  update(progress) {
    const { total, cache, processed } = progress;
    this.#cached.style.width = `${(100 * cache) / total}%`;
    this.#read.style.width = `${(100 * (processed - cache)) / total}%`;
    this.#track.setAttribute('aria-valuenow', Math.floor((100 * processed) / total));
    this.#foresight.note(processed - cache, progress.time_ms);
    const words = readingWords(progress, this.#foresight.msUntil(total - cache));
    this.#track.setAttribute('aria-valuetext', words);
    this.#words.textContent = words;
  }
}

function readingWords({ total, cache, processed, time_ms: ms }, msLeft) {
  const words = [`Reading the prompt: ${whole(processed)} of ${tokens(total)}`];
  const perSecond = ms > 0 ? ((processed - cache) * 1000) / ms : 0;
  if (perSecond > 0) words.push(rate(perSecond));
  if (msLeft > 0) words.push(`about ${duration(msLeft)} left`);
  if (cache > 0) words.push(`${whole(cache)} cached`);
  return words.join(' · ');
}

export function readingShort({ total, processed }) {
  return `Reading the prompt, ${percent(processed, total)}`;
}
