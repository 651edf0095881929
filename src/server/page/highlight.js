// Colors of code: which parts of a line are keywords, strings, comments, numbers and names. By our
// own small scanner and no parser: it looks at each character once, and where it is wrong, a word
// has another color and the text is the same.

import { languageOf } from './languages.js';

// Longer lines have no colors, so that one that grows without end costs no more with each word.
export const LONGEST_LINE = 1000;

const WORD = /[\p{L}_][\p{L}\p{N}_]*/uy;
const NUMBER = /(?:0[xX][\da-fA-F_]+|0[bB][01_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)\w*/y;
const CHARACTER = /'(?:\\[^']{1,8}|\\'|[^'\\])'/y;
const TAG = /<\/?[\p{L}][\p{L}\p{N}:._-]*|<[!?][\p{L}]+/uy;
const ATTRIBUTE = /[\p{L}_@:][\p{L}\p{N}:._-]*/uy;

// Reads the lines of a code block in their order.
export class Highlighter {
  #language;
  #open = null;  // what goes on from the line before: [begin, end, kind], or TAG within a tag

  constructor(name) {
    this.#language = languageOf(name);
  }

  // [kind, text] for each part of a line, '' for what has no color; together they are the line.
  // isWhole: the next one is another line; else it is the same one, grown.
  read(line, isWhole) {
    if (!this.#language || line.length > LONGEST_LINE) return [['', line]];
    const scan = new Scan(line, this.#language, this.#open);
    const parts = scan.all();
    if (isWhole) this.#open = scan.open;
    return parts;
  }
}

class Scan {
  constructor(line, language, open) {
    this.line = line;
    this.language = language;
    this.open = open;
    this.at = 0;
    this.parts = [];
  }

  all() {
    if (this.language.isDiff) return [[diffKind(this.line), this.line]];
    const step = this.language.isMarkup ? () => this.markup() : () => this.code();
    while (this.at < this.line.length) step();
    return this.parts;
  }

  add(kind, end) {
    const last = this.parts.at(-1);
    const text = this.line.slice(this.at, end);
    if (last?.[0] === kind) last[1] += text;
    else this.parts.push([kind, text]);
    this.at = end;
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    return pattern.exec(this.line)?.[0];
  }

  code() {
    if (this.open) return this.goOn();
    const { spans, line: comments, quotes, names = [], hasChars } = this.language;
    const span = spans.find(([begin]) => this.line.startsWith(begin, this.at));
    if (span) return this.begin(span);
    if (comments.some((begin) => this.line.startsWith(begin, this.at)) && this.isApart()) {
      return this.add('comment', this.line.length);
    }
    for (const [pattern, kind] of names) {
      const name = this.match(pattern);
      if (name) return this.add(kind, this.at + name.length);
    }
    const character = this.line[this.at];
    if (quotes.includes(character)) return this.add('string', this.endOfString(character));
    if (hasChars && character === "'") return this.one(CHARACTER, 'string');
    if (/\d/.test(character)) return this.one(NUMBER, 'number');
    return this.word();
  }

  // "a#b" is no comment in a shell.
  isApart() {
    return !this.language.isCommentApart || this.at === 0 || /\s/.test(this.line[this.at - 1]);
  }

  one(pattern, kind) {
    const found = this.match(pattern);
    this.add(found ? kind : '', this.at + (found?.length ?? 1));
  }

  word() {
    const word = this.match(WORD);
    if (!word) return this.add('', this.at + 1);
    const name = this.language.isCaseless ? word.toLowerCase() : word;
    const end = this.at + word.length;
    if (this.language.words.has(name)) return this.add('keyword', end);
    this.add(this.line[end] === '(' ? 'name' : '', end);
  }

  endOfString(quote) {
    let end = this.at + 1;
    while (end < this.line.length && this.line[end] !== quote) {
      end += this.line[end] === '\\' ? 2 : 1;
    }
    return Math.min(end + 1, this.line.length);
  }

  begin(span) {
    this.open = span;
    this.add(span[2], this.at + span[0].length);
  }

  goOn() {
    const [, end, kind] = this.open;
    const found = this.line.indexOf(end, this.at);
    if (found < 0) return this.add(kind, this.line.length);
    this.open = null;
    this.add(kind, found + end.length);
  }

  markup() {
    if (Array.isArray(this.open)) return this.goOn();
    if (this.open === TAG) return this.inTag();
    if (this.line.startsWith('<!--', this.at)) return this.begin(['<!--', '-->', 'comment']);
    const tag = this.match(TAG);
    if (!tag) {
      const next = this.line.indexOf('<', this.at + 1);
      return this.add('', next < 0 ? this.line.length : next);
    }
    this.open = TAG;
    this.add('keyword', this.at + tag.length);
  }

  inTag() {
    const character = this.line[this.at];
    if (character === '>') {
      this.open = null;
      return this.add('keyword', this.at + 1);
    }
    if (character === '"' || character === "'") {
      const end = this.line.indexOf(character, this.at + 1);
      return this.add('string', end < 0 ? this.line.length : end + 1);
    }
    this.one(ATTRIBUTE, 'name');
  }
}

function diffKind(line) {
  if (line.startsWith('@@')) return 'meta';
  if (line.startsWith('+')) return 'added';
  return line.startsWith('-') ? 'removed' : '';
}
