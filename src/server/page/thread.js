// The messages of the path that is shown.

import { AnswerMessage } from './answer_message.js';
import { UserMessage } from './user_message.js';

const NEAR_PX = 48;

export class Thread {
  #scroller;
  #list;
  #toEnd;
  #views = new Map();  // by the message, in the order shown
  #isAtEnd = true;
  #top = 0;
  #heights = '';

  constructor({ scroller, list, toEnd }, actions) {
    this.#scroller = scroller;
    this.#list = list;
    this.#toEnd = toEnd;
    this.actions = actions;
    scroller.addEventListener('scroll', () => this.#note(), { passive: true });
    toEnd.addEventListener('click', () => {
      this.scrollToEnd();
      scroller.focus({ preventScroll: true });
    });
    // Follows what grows, as long as the reader is at the end.
    new ResizeObserver(() => this.#follow()).observe(list);
    new ResizeObserver(() => this.#follow()).observe(scroller);
  }

  // path: messages; stateOf(message): what its view is told.
  show(path, stateOf) {
    const shown = new Set(path);
    for (const [node, view] of this.#views) {
      if (shown.has(node)) continue;
      view.element.remove();
      this.#views.delete(node);
    }
    for (const node of path) {
      if (!this.#views.has(node)) this.#add(node);
      this.update(node, stateOf(node));
    }
  }

  update(node, state) {
    this.#views.get(node)?.update(state);
  }

  // Opens the message of the user to be written anew.
  edit(node) {
    this.#views.get(node)?.edit();
  }

  clear() {
    this.#views.clear();
    this.#list.replaceChildren();
  }

  scrollToEnd() {
    this.#isAtEnd = true;
    this.#follow();
  }

  // On the arrow that was pressed, or on the other one where there is none further.
  focusArrow(node, places) {
    const arrows = [...(this.#views.get(node)?.element.querySelectorAll('.arrows button') ?? [])];
    if (places < 0) arrows.reverse();
    arrows.findLast((arrow) => !arrow.disabled)?.focus();
  }

  #add(node) {
    const View = node.role === 'user' ? UserMessage : AnswerMessage;
    const view = new View(node, this.actions);
    this.#views.set(node, view);
    this.#list.append(view.element);
  }

  // Only the reader leaves the end. Where a height has changed since, the browser may have moved
  // the page, and what is new may not be followed yet.
  #note() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    const isNear = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    const heights = `${scrollHeight} ${clientHeight}`;
    const isMoved = scrollTop < this.#top && heights === this.#heights;
    this.#isAtEnd = isNear || (this.#isAtEnd && !isMoved);
    this.#top = scrollTop;
    this.#heights = heights;
    this.#toEnd.hidden = this.#isAtEnd;
  }

  #follow() {
    if (this.#isAtEnd) this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#note();
  }
}
