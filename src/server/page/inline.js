// Markdown within a line: emphasis, code, links, formulas.

import { el } from './dom.js';
import { displayNode, formulaNode } from './math.js';
import { MathSpans } from './math_spans.js';

const DEEPEST = 16;
const LONGEST_URL = 2048;
const SCHEMES = new Set(['http:', 'https:', 'mailto:']);
const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', nbsp: '\u00a0', '#39': "'" };

const ESCAPED = /[!-/:-@[-`{-~]/;
const SPACE = /\s/;
const PUNCTUATION = /[\p{P}\p{S}]/u;
const AUTOLINK = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2048})>/y;
const BARE_URL = /https?:\/\/[^\s<>"`]{1,2048}/y;
const ENTITY = /&(amp|lt|gt|quot|nbsp|#39);/y;
const BREAK = /<br ?\/?>/iy;
const PLAIN = /[^\\`*_~[\]!<&\nh$]+/y;

export function inlineNodes(text, isInLink = false) {
  return new Inline(text, isInLink).nodes();
}

// What a link may lead to, in full; null for everything else, "javascript:" first of all.
function safeUrl(text) {
  try {
    const url = new URL(text);
    return SCHEMES.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

class Inline {
  constructor(text, isInLink) {
    this.text = text;
    this.isInLink = isInLink;
    this.at = 0;
    // Of marks that may be closed yet, each with what came since; the first is the whole.
    this.frames = [{ mark: '', count: 0, nodes: [] }];
    this.unclosedTicks = new Set();  // numbers of backticks that do not come again
    this.brackets = null;
    this.formulas = new MathSpans(text);
  }

  nodes() {
    while (this.at < this.text.length) this.step();
    this.flattenFrom(1);
    return this.frames[0].nodes;
  }

  step() {
    const plain = this.match(PLAIN);
    if (plain) return this.add(plain[0]);
    switch (this.text[this.at]) {
      case '\\': return this.formula() || this.escape();
      case '$': return this.formula() || this.take(this.text[this.at + 1] === '$' ? 2 : 1);
      case '`': return this.code();
      case '*':
      case '_':
      case '~': return this.mark();
      case '!':
      case '[': return this.link();
      case '<': return this.angle();
      case '&': return this.entity();
      case '\n': return this.take(1, el('br'));
      case 'h': return this.bareUrl();
      default: return this.take(1);
    }
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text);
    if (match) this.at += match[0].length;
    return match;
  }

  take(length, node = this.text.slice(this.at, this.at + length)) {
    this.at += length;
    this.add(node);
  }

  add(node) {
    const { nodes } = this.frames.at(-1);
    const isText = typeof node === 'string' && typeof nodes.at(-1) === 'string';
    nodes.push(isText ? nodes.pop() + node : node);
  }

  // Whether there is one.
  formula() {
    const found = this.formulas.at(this.at);
    if (!found) return false;
    const { source, end, isDisplay, isOpen } = found;
    if (isOpen) this.take(end - this.at);
    else this.take(end - this.at, isDisplay ? displayNode(source) : formulaNode(source, false));
    return true;
  }

  escape() {
    const next = this.text[this.at + 1] ?? '';
    if (next === '\n') return this.take(1, '');
    if (!ESCAPED.test(next)) return this.take(1);
    this.at += 1;
    return this.take(1);
  }

  code() {
    const ticks = this.runLength('`');
    const end = this.unclosedTicks.has(ticks) ? -1 : this.closingTicks(ticks);
    if (end < 0) {
      this.unclosedTicks.add(ticks);
      return this.take(ticks);
    }
    const inner = this.text.slice(this.at + ticks, end).replaceAll('\n', ' ');
    const isPadded = /^ .*[^ ].* $/.test(inner);
    return this.take(end + ticks - this.at, el('code', {}, isPadded ? inner.slice(1, -1) : inner));
  }

  closingTicks(ticks) {
    const mark = '`'.repeat(ticks);
    let at = this.text.indexOf(mark, this.at + ticks);
    while (at >= 0) {
      let end = at + ticks;
      while (this.text[end] === '`') end += 1;
      if (end - at === ticks) return at;
      at = this.text.indexOf(mark, end);
    }
    return -1;
  }

  runLength(character) {
    let end = this.at;
    while (this.text[end] === character) end += 1;
    return end - this.at;
  }

  // A run of "*", "_" or "~": closes what is open, else opens.
  mark() {
    const mark = this.text[this.at];
    const run = this.runLength(mark);
    const { canOpen, canClose } = this.sides(mark, run);
    let left = mark === '~' && run !== 2 ? 0 : run;
    const isText = left === 0;
    this.at += run;
    while (left > 0 && canClose) {
      const used = this.close(mark, left);
      if (used === 0) break;
      left -= used;
    }
    if (isText || (left > 0 && (!canOpen || this.frames.length >= DEEPEST))) {
      this.add(mark.repeat(isText ? run : left));
    } else if (left > 0) {
      this.frames.push({ mark, count: left, nodes: [] });
    }
  }

  sides(mark, run) {
    const before = this.text[this.at - 1] ?? ' ';
    const after = this.text[this.at + run] ?? ' ';
    const isWord = (character) => !SPACE.test(character) && !PUNCTUATION.test(character);
    const canOpen = !SPACE.test(after) && (isWord(after) || !isWord(before));
    const canClose = !SPACE.test(before) && (isWord(before) || !isWord(after));
    const isInWord = mark === '_' && isWord(before) && isWord(after);
    return { canOpen: canOpen && !isInWord, canClose: canClose && !isInWord };
  }

  // Closes the last frame of this mark; how many marks that took.
  close(mark, most) {
    const index = this.frames.findLastIndex((frame) => frame.mark === mark);
    if (index < 0) return 0;
    this.flattenFrom(index + 1);
    const frame = this.frames[index];
    const used = Math.min(2, most, frame.count);
    const node = el(mark === '~' ? 'del' : used === 2 ? 'strong' : 'em', {}, frame.nodes);
    frame.count -= used;
    frame.nodes = [node];
    if (frame.count === 0) {
      this.frames.pop();
      this.add(node);
    }
    return used;
  }

  // Frames that were never closed are text.
  flattenFrom(index) {
    for (const frame of this.frames.splice(index)) {
      this.add(frame.mark.repeat(frame.count));
      for (const node of frame.nodes) this.add(node);
    }
  }

  link() {
    const isImage = this.text[this.at] === '!';
    const open = this.at + (isImage ? 1 : 0);
    const close = this.isInLink ? undefined : this.closingBrackets().get(open);
    const target = close === undefined ? null : this.targetAt(close + 1);
    if (!target) return this.take(1);
    const label = this.text.slice(open + 1, close);
    this.at = target.end;
    const nodes = inlineNodes(label, true);
    if (target.url) return this.add(linkTo(target.url, nodes));
    return nodes.forEach((node) => this.add(node));
  }

  // Where each "[" is closed. Once for all, so that many of them take no longer.
  closingBrackets() {
    if (this.brackets) return this.brackets;
    this.brackets = new Map();
    const open = [];
    for (let at = 0; at < this.text.length; at += 1) {
      if (this.text[at] === '\\') at += 1;
      else if (this.text[at] === '[') open.push(at);
      else if (this.text[at] === ']' && open.length > 0) this.brackets.set(open.pop(), at);
    }
    return this.brackets;
  }

  // The "(url "title")" there; url: null if it is not a safe one.
  targetAt(begin) {
    if (this.text[begin] !== '(') return null;
    let depth = 0;
    for (let at = begin; at < this.text.length && at < begin + LONGEST_URL; at += 1) {
      if (this.text[at] === '\n') return null;
      if (this.text[at] === '(') depth += 1;
      if (this.text[at] === ')') depth -= 1;
      if (depth > 0) continue;
      const [target] = this.text.slice(begin + 1, at).trim().split(/\s/);
      return { url: safeUrl(target.replace(/^<(.*)>$/, '$1')), end: at + 1 };
    }
    return null;
  }

  angle() {
    if (this.match(BREAK)) return this.add(el('br'));
    const link = this.isInLink ? null : this.match(AUTOLINK);
    const url = link && safeUrl(link[1]);
    if (!link) return this.take(1);
    return this.add(url ? linkTo(url, link[1].replace(/^mailto:/, '')) : link[0]);
  }

  entity() {
    const entity = this.match(ENTITY);
    return entity ? this.add(ENTITIES[entity[1]]) : this.take(1);
  }

  bareUrl() {
    const isInWord = /\w/.test(this.text[this.at - 1] ?? '');
    BARE_URL.lastIndex = this.at;
    const match = this.isInLink || isInWord ? null : BARE_URL.exec(this.text);
    if (!match) return this.take(1);
    const shown = trimmedUrl(match[0]);
    const url = safeUrl(shown);
    return url ? this.take(shown.length, linkTo(url, shown)) : this.take(1);
  }
}

// Without what ends the sentence, or the emphasis, around it.
function trimmedUrl(url) {
  let end = url.length;
  while (/[.,:;!?*_~'\]]/.test(url[end - 1])) end -= 1;
  const trimmed = url.slice(0, end);
  return trimmed.endsWith(')') && !trimmed.includes('(') ? trimmed.slice(0, -1) : trimmed;
}

function linkTo(url, nodes) {
  return el('a', { href: url, target: '_blank', rel: 'noopener noreferrer' }, nodes);
}
