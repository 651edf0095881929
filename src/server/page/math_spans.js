// Where formulas stand in a text: "$...$", "$$...$$", "\(...\)" and "\[...\]".

const LONGEST = 1000;  // within a line
const LONGEST_DISPLAY = 4096;
const LONGEST_OPEN = 500;  // that is shown as its source until it is closed

const WORD = /[\p{L}\p{N}]/u;
const SPACE = /\s/;

// Asked from left to right, so that many signs that are no formula take no longer.
export class MathSpans {
  #text;
  #dollars = null;  // where they stand, but for "\$"
  #next = 0;  // of those
  #ends = new Map();  // where "$$" and the like come next; -1: not again

  constructor(text) {
    this.#text = text;
  }

  // The formula that begins with the "$" or the "\" there: {source, end, isDisplay}, or with
  // isOpen where its end is not written yet; null: there is none.
  at(begin) {
    const text = this.#text;
    if (text[begin] === '$') {
      return text[begin + 1] === '$' ? this.#between(begin, '$$') : this.#inLine(begin);
    }
    if (text[begin + 1] === '(') return this.#between(begin, '\\)') ?? this.#open(begin);
    if (text[begin + 1] === '[') return this.#between(begin, '\\]') ?? this.#open(begin);
    return null;
  }

  #between(begin, close) {
    let end = this.#ends.get(close);
    if (end === undefined || (end >= 0 && end < begin + 2)) {
      end = this.#text.indexOf(close, begin + 2);
      this.#ends.set(close, end);
    }
    if (end < 0 || end - begin > LONGEST_DISPLAY) return null;
    const source = this.#text.slice(begin + 2, end);
    return source.trim() ? { source, end: end + 2, isDisplay: close !== '\\)' } : null;
  }

  #open(begin) {
    const end = this.#text.length;
    const close = this.#text[begin + 1] === '(' ? '\\)' : '\\]';
    if (end - begin > LONGEST_OPEN || this.#ends.get(close) >= 0) return null;
    return { source: this.#text.slice(begin), end, isOpen: true };
  }

  // "$5 and $6" are prices: a formula ends with the next "$", right behind its last character and
  // not before a word.
  #inLine(begin) {
    const text = this.#text;
    const isAfterWord = WORD.test(text[begin - 1] ?? ' ');
    if (isAfterWord || SPACE.test(text[begin + 1] ?? ' ')) return null;
    const end = this.#dollarBehind(begin);
    if (end === undefined || end - begin > LONGEST || !isCloser(text, end)) return null;
    const source = text.slice(begin + 1, end);
    return source.includes('`') ? null : { source, end: end + 1, isDisplay: false };
  }

  // undefined: there is none.
  #dollarBehind(at) {
    this.#dollars ??= dollarsOf(this.#text);
    while (this.#dollars[this.#next] <= at) this.#next += 1;
    return this.#dollars[this.#next];
  }
}

const isCloser = (text, at) =>
  !SPACE.test(text[at - 1]) && text[at + 1] !== '$' && !WORD.test(text[at + 1] ?? ' ');

function dollarsOf(text) {
  const dollars = [];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '$') dollars.push(at);
  }
  return dollars;
}
