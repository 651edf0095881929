// Code of an answer, with its colors, to which lines may be appended while it is written.

import { copyFrom, el, iconButton } from './dom.js';
import { Highlighter, LONGEST_LINE } from './highlight.js';

const LINES_OF_PART = 200;

export class CodeBlock {
  #code = el('code');
  #text = '';
  #part = null;  // the last one: all that the browser lays out anew when lines come
  #linesOfPart = 0;
  #line = '';  // the last one, as long as it may grow
  #tail = el('span');  // where it is shown
  #highlighter;

  constructor({ language, text }) {
    this.language = language;
    this.#highlighter = new Highlighter(language);
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
    for (const piece of text.split(/(?<=\n)/)) {
      if (!this.#part || (this.#linesOfPart >= LINES_OF_PART && !this.#line)) this.#begin();
      if (piece.endsWith('\n')) this.#end(piece);
      else this.#grow(piece);
    }
  }

  #grow(piece) {
    const wasLong = this.#line.length > LONGEST_LINE;
    this.#line += piece;
    if (wasLong) this.#tail.lastChild.appendData(piece);
    else this.#tail.replaceChildren(...this.#highlighter.read(this.#line, false).map(nodeOf));
    if (this.#tail.parentNode !== this.#part) this.#part.append(this.#tail);
  }

  #end(piece) {
    this.#tail.remove();
    this.#tail.replaceChildren();
    for (const part of this.#highlighter.read(this.#line + piece, true)) {
      const { lastChild } = this.#part;
      // Texts side by side are one, or a long block would be of many.
      if (!part[0] && lastChild?.nodeType === Node.TEXT_NODE) lastChild.appendData(part[1]);
      else this.#part.append(nodeOf(part));
    }
    this.#line = '';
    this.#linesOfPart += 1;
  }

  #begin() {
    this.#part = el('span');
    this.#linesOfPart = 0;
    this.#code.append(this.#part);
  }
}

function nodeOf([kind, text]) {
  return kind ? el('span', { className: `code-${kind}` }, text) : document.createTextNode(text);
}
