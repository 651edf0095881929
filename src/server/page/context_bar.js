// How much of the context a conversation takes: what the model remembered (from its cache), what
// was read, what was written, and what the attention dropped, where it stood.

import { el, svg, textButton } from './dom.js';
import { percent, tokens, whole } from './format.js';

const MOST_LISTED = 100;

// {limit (0: none), used, cached, read, dropped, spans} of the last answer of a path and of what is
// read right now; null while nothing is known.
export function contextUse(path, progress, limit) {
  if (progress) {
    return { limit, used: progress.total, cached: progress.cache,
      read: progress.total - progress.cache, dropped: 0, spans: [] };
  }
  const answer = path.findLast((message) => message.timings || message.progress);
  if (!answer) return null;
  if (!answer.timings) {  // it was stopped: what was read till then
    const { processed, cache } = answer.progress;
    const read = processed - cache;
    return { limit, used: processed, cached: cache, read, dropped: 0, spans: [] };
  }
  const { cache_n: cached, prompt_n: read, predicted_n: written } = answer.timings;
  const all = cached + read + written;
  const { seen = all, dropped = 0, dropped_spans: spans = [] } = answer.kv ?? {};
  return { limit, used: Math.max(seen, cached + read), cached, read, dropped, spans,
    policy: answer.kv?.policy };
}

export class ContextBar {
  #words = el('span', { className: 'context-words' });
  #small = el('span', { className: 'context-track' });
  #large = el('div', { className: 'context-track large' });
  #list = el('div', { className: 'context-list' });

  #actions;

  // actions: {keepEverything()}
  constructor(actions) {
    this.#actions = actions;
    this.element = el('details', { className: 'context', hidden: true },
      el('summary', {}, this.#small, this.#words), this.#large, legend(), this.#list);
  }

  // isForgetting: the chat keeps its beginning and its end alone, as its reader has chosen.
  update(use, isForgetting) {
    this.element.hidden = !use;
    if (!use) return;
    this.#words.textContent = wordsOf(use);
    this.#small.replaceChildren(drawing(use, Math.max(use.limit, use.used)));
    this.#large.replaceChildren(drawing(use, use.used));
    this.#list.replaceChildren(...details(use), ...(isForgetting ? [this.#wayBack()] : []));
  }

  #wayBack() {
    return el('p', {}, 'You chose to keep only the beginning and the end of this chat. ',
      textButton('Keep all of it', () => this.#actions.keepEverything()));
  }
}

function wordsOf({ limit, used, cached, dropped }) {
  const of = limit > 0 ? ` of ${tokens(limit)} (${percent(used, limit)})` : ' tokens, no limit';
  const words = [`Context: ${whole(used)}${of}`];
  if (cached > 0) words.push(`${whole(cached)} cached`);
  if (dropped > 0) words.push(`${whole(dropped)} forgotten`);
  return words.join(' · ');
}

// Tokens from left to right, over `width` positions. What is dropped is lower, not only of another
// color.
function drawing({ used, cached, read, spans }, width) {
  const prompt = Math.min(cached + read, used);
  const parts = [['cached', 0, Math.min(cached, used)], ['read', cached, prompt],
    ['written', prompt, used]];
  const rects = parts.filter(([, begin, end]) => end > begin).map(([name, begin, end]) =>
    svg('rect', { class: name, x: begin, width: end - begin, height: 10 }));
  const holes = spans.map(([begin, end]) => `M${begin} 0H${end}V10H${begin}Z`).join('');
  const marks = spans.map(([begin, end]) => `M${begin} 6H${end}V10H${begin}Z`).join('');
  return svg('svg', { viewBox: `0 0 ${Math.max(width, 1)} 10`, preserveAspectRatio: 'none',
    'aria-hidden': 'true' }, ...rects,
  svg('path', { class: 'hole', d: holes }), svg('path', { class: 'dropped', d: marks }));
}

function legend() {
  const names = { cached: 'cached', read: 'read', written: 'written', dropped: 'forgotten' };
  return el('ul', { className: 'legend' }, ...Object.entries(names).map(([name, text]) =>
    el('li', {}, el('span', { className: `swatch ${name}` }), text)));
}

function details({ used, cached, read, dropped, spans, policy }) {
  const written = Math.max(used - cached - read, 0);
  const remembered = cached > 0
    ? ` ${whole(cached)} were cached and not read again.` : '';
  const lines = [`The bar above shows the chat, from its first token to token ${whole(used)}: ` +
    `${whole(read)} read and ${whole(written)} written.${remembered}`];
  if (policy) lines.push(`Attention: ${policy}.`);
  if (dropped > 0) {
    const listed = spans.slice(0, MOST_LISTED).map(([begin, end]) =>
      `${whole(begin)} to ${whole(end - 1)}`);
    const rest = spans.length > MOST_LISTED ? ` and ${spans.length - MOST_LISTED} more spans` : '';
    lines.push(`Forgotten (${tokens(dropped)}), which the model no longer sees: ` +
      `${listed.join(', ')}${rest}.`);
  }
  return lines.map((line) => el('p', {}, line));
}
