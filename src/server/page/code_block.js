// Code of an answer, to which lines may be appended while it is written.

import { copyFrom, el, iconButton } from './dom.js';

const LINES_OF_PART = 200;

export class CodeBlock {
  #code = el('code');
  #text = '';
  #part = null;  // the last one: all that the browser lays out anew when lines come
  #linesOfPart = 0;

  constructor({ language, text }) {
    this.language = language;
    const copy = iconButton('copy', 'Copy the code', () => copyFrom(copy, this.#text));
    const name = language || 'text';
    this.element = el('div', { className: 'code' },
      el('div', { className: 'code-head' }, el('span', {}, name), copy),
      el('pre', { tabIndex: 0, role: 'group', 'aria-label': `Code, ${name}` }, this.#code));
    this.append(text);
  }

  // Shows what begins with what is shown; false, and nothing is done, if it does not.
  grow({ language, text }) {
    if (language !== this.language || !text.startsWith(this.#text)) return false;
    this.append(text.slice(this.#text.length));
    return true;
  }

  append(text) {
    this.#text += text;
    for (const line of text.split(/(?<=\n)/)) {
      if (!this.#part || this.#linesOfPart >= LINES_OF_PART) this.#begin();
      this.#part.append(line);
      if (line.endsWith('\n')) this.#linesOfPart += 1;
    }
    this.#part?.normalize();
  }

  #begin() {
    this.#part?.normalize();
    this.#part = el('span');
    this.#linesOfPart = 0;
    this.#code.append(this.#part);
  }
}
