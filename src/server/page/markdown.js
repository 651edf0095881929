// Markdown to nodes. No text is ever read as HTML, so that there is nothing to clean.

import { CodeBlock } from './code_block.js';
import { el } from './dom.js';
import { inlineNodes } from './inline.js';
import { displayNode, sourceNode } from './math.js';

// Deeper quotes and lists are text: browsers lay out by recursion.
const DEEPEST = 12;

// Longer lists go on as another one, so that while one is written not all of it is laid out anew.
const MOST_ITEMS = 100;

const FENCE = /^( {0,3})(`{3,}|~{3,})[ \t]*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})([ \t]|$)/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])([ \t]+|$)/;
const TABLE_RULE = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

// A formula between lines; an environment of LaTeX is one without more.
const MATH = /^ {0,3}(?:(\$\$)|(\\\[)|(\\begin\{(?:align|aligned|equation|gather|eqnarray)\*?\}))/;
const LONGEST_MATH = 4096;

// The blocks of a text: {kind, begin, ...}; the text of a paragraph begins `margin` behind that.
// What follows a block, except for the last, changes nothing in it.
export function blocksOf(text, depth = 0) {
  return new Blocks(text, depth).all();
}

export function nodeOf(block) {
  return RENDER[block.kind](block);
}

export function markdownNodes(text, depth = 0) {
  return blocksOf(text, depth).map(nodeOf);
}

class Blocks {
  constructor(text, depth) {
    this.raw = text.split('\n');
    this.lines = this.raw.map(withSpaces);
    this.begins = beginsOf(text);
    this.depth = depth;
    this.at = 0;
    this.mathFrom = 0;  // the first line that may begin a formula
  }

  all() {
    const blocks = [];
    while (this.at < this.lines.length) {
      const begin = this.begins[this.at];
      if (isBlank(this.lines[this.at])) this.at += 1;
      else blocks.push({ begin, depth: this.depth, ...this.next() });
    }
    return blocks;
  }

  next() {
    const line = this.lines[this.at];
    const fence = FENCE.exec(line);
    if (fence) return this.code(fence);
    if (HEADING.test(line)) return this.heading();
    if (RULE.test(line)) return this.rule();
    if (this.depth < DEEPEST && QUOTE.test(line)) return this.quote();
    if (this.depth < DEEPEST && isItem(line)) return this.list();
    if (this.isTable(this.at)) return this.table();
    return (this.isMath(this.at) ? this.math() : null) ?? this.paragraph();
  }

  code([, indent, fence, language]) {
    const margin = new RegExp(`^ {0,${indent.length}}`);
    const end = new RegExp(`^ {0,3}${fence[0]}{${fence.length},}[ \\t]*$`);
    const body = [];
    let isOpen = true;
    for (this.at += 1; this.at < this.lines.length && isOpen; this.at += 1) {
      if (end.test(this.lines[this.at])) isOpen = false;
      else body.push(this.raw[this.at].replace(margin, ''));  // with its tabs
    }
    return { kind: 'code', language: language.trim().split(/\s/)[0], text: body.join('\n'),
      openEnd: isOpen && !indent ? end : null };
  }

  heading() {
    const line = this.lines[this.at++].trim();
    const level = HEADING.exec(line)[1].length;
    let end = line.length;
    while (line[end - 1] === '#') end -= 1;
    const isClosed = end < line.length && end > level && line[end - 1] === ' ';
    return { kind: 'heading', level, text: line.slice(level, isClosed ? end : undefined).trim() };
  }

  rule() {
    this.at += 1;
    return { kind: 'rule' };
  }

  quote() {
    const body = [];
    for (; this.at < this.lines.length; this.at += 1) {
      const line = this.lines[this.at];
      if (!QUOTE.test(line) && !this.continues(body.at(-1), this.at)) break;
      body.push(line.replace(QUOTE, ''));
    }
    return { kind: 'quote', text: body.join('\n') };
  }

  list() {
    const isOrdered = /\d/.test(ITEM.exec(this.lines[this.at])[2]);
    const start = isOrdered ? parseInt(ITEM.exec(this.lines[this.at])[2], 10) : 0;
    const items = [];
    let isLoose = false;
    while (this.at < this.lines.length && items.length < MOST_ITEMS) {
      const item = ITEM.exec(this.lines[this.at]);
      if (!item || RULE.test(this.lines[this.at]) || /\d/.test(item[2]) !== isOrdered) break;
      const body = this.item(item);
      const hasNext = this.at < this.lines.length && ITEM.test(this.lines[this.at]);
      isLoose ||= hasNext && isBlank(body.at(-1)) && body.length > 1;
      items.push(body.join('\n').trimEnd());
    }
    return { kind: 'list', isOrdered, start, items, isLoose };
  }

  // The lines of one item, without what they are indented by.
  item([marker, outer, sign, space]) {
    const width = space.length > 4 || !space ? outer.length + sign.length + 1 : marker.length;
    const body = [this.lines[this.at].slice(marker.length)];
    for (this.at += 1; this.at < this.lines.length; this.at += 1) {
      const line = this.lines[this.at];
      const indent = line.length - line.trimStart().length;
      // Models write lists below "1." with two spaces, where Markdown asks for three.
      const isInner = indent >= width || (indent >= outer.length + 2 && isItem(line));
      if (!isBlank(line) && !isInner && !this.continues(body.at(-1), this.at)) break;
      body.push(line.slice(Math.min(indent, width)));
    }
    return body;
  }

  // To its end, or, while that is not written yet, to that of the text; null: there is a blank line
  // before it, and what looked like a formula is a text.
  math() {
    const close = mathEnd(this.lines[this.at]);
    const body = [];
    let length = 0;
    for (let at = this.at; at < this.lines.length; at += 1) {
      const line = this.lines[at].trim();
      body.push(line);
      length += line.length;
      const isBroken = isBlank(line) && at + 1 < this.lines.length;
      if (isBroken || length > LONGEST_MATH) {
        this.mathFrom = at;  // the lines until there are looked at once
        return null;
      }
      if (line.endsWith(close) && body.join('\n').length >= 2 * close.length) {
        this.at = at + 1;
        return { kind: 'math', text: formulaIn(body.join('\n'), close) };
      }
    }
    this.at = this.lines.length;
    return { kind: 'math', text: body.join('\n'), isOpen: true };
  }

  table() {
    const aligns = cellsOf(this.lines[this.at + 1]).map(alignOf);
    const rows = [cellsOf(this.lines[this.at])];
    for (this.at += 2; this.at < this.lines.length; this.at += 1) {
      const line = this.lines[this.at];
      if (isBlank(line) || this.startsBlock(this.at)) break;
      rows.push(cellsOf(line));
    }
    return { kind: 'table', aligns, rows };
  }

  paragraph() {
    const first = this.raw[this.at];
    const margin = first.length - first.trimStart().length;
    const body = [first.slice(margin)];
    for (this.at += 1; this.at < this.lines.length; this.at += 1) {
      if (!this.continues(body.at(-1), this.at)) break;
      body.push(this.raw[this.at]);
    }
    return { kind: 'paragraph', margin, text: body.join('\n').trimEnd() };
  }

  // Whether a line goes on with the paragraph before it.
  continues(before, at) {
    return before !== undefined && !isBlank(before) && !isBlank(this.lines[at]) &&
      !this.startsBlock(at) && !FENCE.test(before);
  }

  startsBlock(at) {
    const line = this.lines[at];
    return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) ||
      isItem(line) || this.isMath(at) || this.isTable(at);
  }

  isMath(at) {
    return at >= this.mathFrom && isMath(this.lines[at]);
  }

  isTable(at) {
    const rule = this.lines[at + 1];
    return rule !== undefined && rule.includes('|') && this.lines[at].includes('|') &&
      TABLE_RULE.test(rule) && cellsOf(rule).length === cellsOf(this.lines[at]).length;
  }
}

// Whether a line begins a formula and nothing else: "$$x$$ is" goes on as a text.
function isMath(line) {
  if (!MATH.test(line)) return false;
  const close = mathEnd(line);
  const end = line.indexOf(close, line.search(/\S/) + 2);
  return end < 0 || line.slice(end + close.length).trim() === '';
}

function mathEnd(line) {
  const [, dollars, bracket, begin] = MATH.exec(line);
  return dollars ?? (bracket ? '\\]' : begin.replace('begin', 'end'));
}

const formulaIn = (text, close) => (close.startsWith('\\end') ? text : text.slice(2, -2));

const isBlank = (line) => line.trim() === '';
const isItem = (line) => ITEM.test(line) && ITEM.exec(line)[0].length < line.length;
const withSpaces = (line) => line.replace(/^\t+/, (tabs) => '    '.repeat(tabs.length));

function beginsOf(text) {
  const begins = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) begins.push(at + 1);
  return begins;
}

function cellsOf(line) {
  const cells = [];
  let cell = '';
  let isCode = false;
  const row = line.trim().replace(/^\|/, '');
  for (let at = 0; at < row.length; at += 1) {
    if (row[at] === '`') isCode = !isCode;
    if (row[at] === '\\' && row[at + 1] === '|') {
      cell += '|';
      at += 1;
    } else if (row[at] === '|' && !isCode) {
      cells.push(cell.trim());
      cell = '';
    } else {
      cell += row[at];
    }
  }
  if (cell.trim() || !row.endsWith('|')) cells.push(cell.trim());
  return cells;
}

function alignOf(rule) {
  if (!rule.endsWith(':')) return 'start';
  return rule.startsWith(':') ? 'center' : 'end';
}

const RENDER = {
  code: (block) => new CodeBlock(block).element,
  heading: ({ level, text }) => el(`h${level}`, {}, inlineNodes(text)),
  rule: () => el('hr'),
  quote: ({ text, depth }) => el('blockquote', {}, markdownNodes(text, depth + 1)),
  paragraph: ({ text, isPart }) =>
    el('p', { className: isPart ? 'part' : undefined }, inlineNodes(text)),
  math: ({ text, isOpen }) =>
    el('p', {}, isOpen ? sourceNode(text) : displayNode(text)),
  list: listNode,
  table: tableNode,
};

function listNode({ isOrdered, start, items, isLoose, depth }) {
  const list = el(isOrdered ? 'ol' : 'ul');
  if (isOrdered) list.start = start;
  for (const item of items) {
    const task = /^\[([ xX])\] /.exec(item);
    const blocks = blocksOf(task ? item.slice(4) : item, depth + 1);
    const box = task ? [task[1] === ' ' ? '☐ ' : '☑ '] : [];
    const nodes = blocks.flatMap((block) =>
      block.kind === 'paragraph' && !isLoose ? inlineNodes(block.text) : [nodeOf(block)]);
    list.append(el('li', { className: task ? 'task' : undefined }, box, nodes));
  }
  return list;
}

function tableNode({ aligns, rows }) {
  const [head, ...body] = rows.map((cells, row) => el('tr', {}, aligns.map((align, column) =>
    el(row === 0 ? 'th' : 'td', { className: align }, inlineNodes(cells[column] ?? '')))));
  const table = el('table', {}, el('thead', {}, head), el('tbody', {}, body));
  const name = { role: 'group', 'aria-label': 'Table' };
  return el('div', { className: 'table', tabIndex: 0, ...name }, table);
}
