// Markdown that grows: blocks that are finished are left alone, the last one is rendered anew.

import { CodeBlock } from './code_block.js';
import { blocksOf, nodeOf } from './markdown.js';

const MOST_OFTEN_MS = 100;
const LONGEST_PARAGRAPH = 8192;

export class LiveMarkdown {
  #element;
  #text = '';
  #stable = 0;  // where the last block begins
  #last = null;  // its node
  #code = null;  // if it is code
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
    const blocks = blocksOf(this.#text.slice(this.#stable)).flatMap(parts);
    const base = this.#stable;
    blocks.forEach((block, index) => {
      if (index > 0 || !this.#grow(block)) this.#put(block, index === 0);
      this.#stable = base + block.begin;
    });
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
  const rest = { ...block, begin: block.begin + end, text: block.text.slice(end) };
  return [{ ...block, text: block.text.slice(0, end), isPart: true }, ...parts(rest)];
}

// Where a word begins, and nothing that makes a list or a heading of the rest.
function wordBefore(text, end) {
  for (let at = text.lastIndexOf(' ', end); at > 0; at = text.lastIndexOf(' ', at - 1)) {
    if (/\p{L}/u.test(text[at + 1])) return at + 1;
  }
  return end;
}
