// What a model thought before its answer, folded.

import { el } from './dom.js';

export class Thought {
  #label = el('summary');
  #text = el('div', { className: 'plain' });
  element = el('details', { className: 'thought', hidden: true }, this.#label, this.#text);
  #shown = 0;  // characters

  // isWriting: the answer is on its way.
  show({ thought = '', content }, isWriting = false) {
    this.element.hidden = !thought;
    const label = isWriting && !content ? 'Thinking' : 'Thoughts';
    if (this.#label.textContent !== label) this.#label.textContent = label;
    this.#text.append(thought.slice(this.#shown));
    this.#shown = thought.length;
  }
}
