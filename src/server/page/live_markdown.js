// Markdown that grows: blocks that are finished are left alone, the last one is rendered anew, but
// for code, of which only what is new is looked at.

import { CodeBlock } from './code_block.js';
import { blocksOf, nodeOf } from './markdown.js';

const MOST_OFTEN_MS = 100;
const LONGEST_PARAGRAPH = 8192;

// The end of a text of code that may become the line that ends the code.
const MAYBE_END = /\n {0,3}[`~]*[ \t]*$/;
const LONGEST_END = 256;

export class LiveMarkdown {
  #element;
  #text = '';
  #stable = 0;  // where the last block begins
  #last = null;  // its node
  #code = null;  // if it is code
  #open = null;  // {end (a pattern), shown (of the text)} while nothing but code can follow
  #timer = 0;
  #pause = MOST_OFTEN_MS;

  constructor(element) {
    this.#element = element;
  }

  // Soon, and not before what is there is on the screen: however long the text, the page has most
  // of the time for its reader.
  show(text) {
    this.#text = text;
    if (this.#timer) return;
    this.#timer = setTimeout(() => requestAnimationFrame((before) => {
      this.#timer = 0;
      this.#render();
      requestAnimationFrame((after) => {
        this.#pause = Math.max(MOST_OFTEN_MS, 4 * (after - before));
      });
    }), this.#pause);
  }

  showNow(text) {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#text = text;
    this.#render();
  }

  #render() {
    if (this.#growOpen()) return;
    const blocks = blocksOf(this.#text.slice(this.#stable)).flatMap(parts);
    const base = this.#stable;
    blocks.forEach((block, index) => {
      if (index > 0 || !this.#grow(block)) this.#put(block, index === 0);
      this.#stable = base + block.begin;
    });
    this.#noteOpen(blocks.at(-1));
  }

  // All of an open block of code is shown, and its last line will not be the one that ends it.
  #noteOpen(block) {
    const isOpen = block?.kind === 'code' && block.openEnd && block.text &&
      !MAYBE_END.test(this.#text.slice(-LONGEST_END));
    this.#open = isOpen ? { end: block.openEnd, shown: this.#text.length } : null;
  }

  // true: what is new are lines of the open block of code, and they are shown.
  #growOpen() {
    if (!this.#open) return false;
    const { end, shown } = this.#open;
    const fresh = this.#text.slice(shown);
    if (fresh.split('\n').slice(1).some((line) => end.test(line))) {
      this.#open = null;
      return false;
    }
    const held = MAYBE_END.exec(fresh)?.[0].length ?? 0;
    this.#code.append(fresh.slice(0, fresh.length - held));
    this.#open.shown += fresh.length - held;
    return true;
  }

  // true: it was code and it was enough to append to it.
  #grow(block) {
    return block.kind === 'code' && (this.#code?.grow(block) ?? false);
  }

  #put(block, isLastAgain) {
    this.#code = block.kind === 'code' ? new CodeBlock(block) : null;
    const node = this.#code?.element ?? nodeOf(block);
    if (isLastAgain && this.#last) this.#last.replaceWith(node);
    else this.#element.append(node);
    this.#last = node;
  }
}

// A paragraph without end, as small models write them, would be laid out anew with every word.
function parts(block) {
  if (block.kind !== 'paragraph' || block.text.length <= LONGEST_PARAGRAPH) return [block];
  const end = wordBefore(block.text, LONGEST_PARAGRAPH);
  const begin = block.begin + block.margin + end;
  const rest = { ...block, begin, margin: 0, text: block.text.slice(end) };
  return [{ ...block, text: block.text.slice(0, end), isPart: true }, ...parts(rest)];
}

// Where a word begins, and nothing that makes a list or a heading of the rest.
function wordBefore(text, end) {
  for (let at = text.lastIndexOf(' ', end); at > 0; at = text.lastIndexOf(' ', at - 1)) {
    if (/\p{L}/u.test(text[at + 1])) return at + 1;
  }
  return end;
}
