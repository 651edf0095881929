// What a message will take of the context, before it is sent.

import { el } from './dom.js';
import { tokens, whole } from './format.js';

export class RoomLine {
  element = el('p', { className: 'room', role: 'status', hidden: true });

  // need: {count, isMore, isCounting} of the message; used: of the context by what was said before;
  // limit: of the context, 0 for none.
  show(need, { used, limit }) {
    this.element.hidden = need.count === 0 && !need.isCounting;
    const isOver = limit > 0 && used + need.count > limit;
    this.element.classList.toggle('over', isOver);
    const words = wordsOf(need, Math.max(limit - used, 0), limit, isOver);
    if (this.element.textContent !== words) this.element.textContent = words;
  }
}

function wordsOf({ count, isMore, isCounting }, left, limit, isOver) {
  if (isOver) {
    return `This does not fit: ${isMore || isCounting ? 'over' : 'about'} ${tokens(count)}, and ` +
      `${whole(left)} of the ${whole(limit)} that the model can read are left. Remove a file, or ` +
      'shorten the text.';
  }
  if (isCounting) return 'Counting the tokens…';
  const about = `This message: about ${tokens(count)}`;
  return limit > 0 ? `${about} · ${whole(left - count)} left after it` : about;
}
