// What a message will take of the context, before it is sent.

import { el } from './dom.js';
import { tokens, whole } from './format.js';

export class RoomLine {
  element = el('p', { className: 'room', role: 'status', hidden: true });

  // need: {count, isMore, isCounting} of the message; used: of the context by what was said before;
  // limit: of the context, 0 for none; canForget: there is an attention without a limit. price: what
  // is known of the time (price.js), in words.
  show(need, { used, limit, canForget }, price) {
    this.element.hidden = need.count === 0 && !need.isCounting;
    const isOver = limit > 0 && used + need.count > limit;
    this.element.classList.toggle('over', isOver);
    const words = isOver ? overWords(need, Math.max(limit - used, 0), limit, canForget)
      : wordsOf(need, limit - used, limit, price);
    if (this.element.textContent !== words) this.element.textContent = words;
  }
}

function overWords({ count, isMore, isCounting }, left, limit, canForget) {
  const about = isMore || isCounting ? 'over' : 'about';
  return `This does not fit: ${about} ${tokens(count)}, while ${whole(left)} of the ` +
    `model's ${whole(limit)} are free. Remove a file, or shorten the text` +
    `${canForget ? ', or send it and choose to keep beginning and end.' : '.'}`;
}

function wordsOf({ count, isCounting }, left, limit, price) {
  if (isCounting) return 'Counting the tokens…';
  const words = [`This message: about ${tokens(count)}`];
  if (limit > 0) words.push(`${whole(left - count)} free after it`);
  if (price) words.push(price);
  return words.join(' · ');
}
