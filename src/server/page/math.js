// Formulas as models write them, in LaTeX, to MathML, which browsers lay out themselves. By a
// parser of our own for what such answers have: a library for all of TeX is a hundred times as
// large, with fonts. A command that is not known is shown as it is written, and so is all of a
// formula that cannot be read. Nodes are made one by one: nothing of it is ever read as HTML.

import { el } from './dom.js';
import { commandNode } from './math_commands.js';
import { math, row, space, tableOf } from './math_nodes.js';

const LONGEST = 4096;
const DEEPEST = 40;  // browsers lay out by recursion

const TOKEN = /\\(?:(?:operatorname|hspace)\*|[a-zA-Z]+|[^])|\d+(?:\.\d+)?|\s+|[^]/gu;
const SIGNS = { '-': '−', '*': '∗', '~': '\u00a0' };
const LETTERS = new Set(['mi', 'mn', 'msup', 'msub', 'msubsup', 'mfrac', 'msqrt']);
const THIN = 0.1667;  // em
const UPRIGHT = /[()[\]|/.,;:!?+=<>−∗]/u;

// source: without its "$"; isDisplay: on lines of its own.
export function formulaNode(source, isDisplay) {
  try {
    if (source.length > LONGEST) throw new SyntaxError('long');
    const parser = new Parser(source, isDisplay);
    const root = math('math', { alttext: source.trim() }, parser.whole());
    if (isDisplay) root.setAttribute('display', 'block');
    return root;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return sourceNode(source);
  }
}

// On a line of its own, within a text or between its paragraphs.
export function displayNode(source) {
  return el('span', { className: 'formula' }, formulaNode(source, true));
}

export const sourceNode = (source) => el('code', { className: 'math-source' }, source.trim());

class Parser {
  constructor(source, isDisplay) {
    this.isDisplay = isDisplay;
    this.tokens = source.match(TOKEN) ?? [];
    this.at = 0;
    this.depth = 0;
  }

  // The next token that is no space, which stays; '' at the end.
  peek() {
    while (/^\s/.test(this.tokens[this.at] ?? '')) this.at += 1;
    return this.tokens[this.at] ?? '';
  }

  next() {
    const token = this.peek();
    this.at += 1;
    return token;
  }

  // Whether that came, and is taken.
  takes(token) {
    if (this.peek() !== token) return false;
    this.at += 1;
    return true;
  }

  expect(token) {
    if (!this.takes(token)) throw new SyntaxError(`no ${token}`);
  }

  whole() {
    const lines = this.lines([]);
    if (this.peek()) throw new SyntaxError(`a ${this.peek()} too many`);
    if (lines.length === 1 && lines[0].length === 1) return lines[0][0];
    return tableOf(lines, lines.some((cells) => cells.length > 1) ? 'aligned' : '', true);
  }

  // Rows of cells, to one of these tokens.
  lines(ends) {
    const lines = [[]];
    for (;;) {
      lines.at(-1).push(this.row([...ends, '&', '\\\\', '\\cr']));
      if (this.takes('&')) continue;
      if (!this.takes('\\\\') && !this.takes('\\cr')) break;
      this.skipGap();
      lines.push([]);
    }
    // What ends with a line has no empty one behind it.
    const [only, more] = lines.at(-1);
    const isEmpty = !more && only.localName === 'mrow' && only.childElementCount === 0;
    if (lines.length > 1 && isEmpty) lines.pop();
    return lines;
  }

  // "[2pt]" behind "\\".
  skipGap() {
    if (this.tokens[this.at] !== '[') return;
    const end = this.tokens.indexOf(']', this.at);
    if (end > 0 && end - this.at < 6) this.at = end + 1;
  }

  // All atoms to one of these tokens, which stays, or the end.
  row(ends) {
    if ((this.depth += 1) > DEEPEST) throw new SyntaxError('deep');
    const nodes = [];
    for (let token; (token = this.peek()) && !ends.includes(token);) {
      if (token === '}' || token === '\\right' || token === '\\end') {
        throw new SyntaxError(`a ${token} too many`);
      }
      const node = this.scripted();
      // "n log n" has gaps, "log(n)" has none.
      const isFunction = node.dataset.isFunction || node.firstElementChild?.dataset.isFunction;
      if (isFunction && LETTERS.has(nodes.at(-1)?.localName)) nodes.push(space(THIN));
      nodes.push(node);
      if (isFunction && this.isWordNext()) nodes.push(space(THIN));
    }
    this.depth -= 1;
    return row(nodes);
  }

  isWordNext() {
    return /^[\p{L}\p{N}{\\]/u.test(this.peek()) && !/^\\(?:left|right|end|[^a-zA-Z])/u.test(
      this.peek());
  }

  // What a command is given: a group, or one atom.
  argument() {
    if (this.takes('{')) {
      const node = this.row(['}']);
      this.expect('}');
      return node;
    }
    if (!this.peek() || '}&^_'.includes(this.peek())) throw new SyntaxError('no argument');
    this.splitNumber();
    if ((this.depth += 1) > DEEPEST) throw new SyntaxError('deep');
    const node = this.atom();
    this.depth -= 1;
    return node;
  }

  // In "x^12" and "\\frac12" an argument is one digit.
  splitNumber() {
    const token = this.peek();
    if (/^\d./.test(token)) this.tokens.splice(this.at, 1, token[0], token.slice(1));
  }

  // The same as it is written, between "{" and "}".
  textArgument() {
    this.expect('{');
    let text = '';
    for (let depth = 1; ;) {
      const token = this.tokens[this.at++];
      if (token === undefined) throw new SyntaxError('no }');
      if (token === '{') depth += 1;
      if (token === '}' && (depth -= 1) === 0) return text;
      text += /^\\[^a-zA-Z]/u.test(token) ? token.slice(1) : token;
    }
  }

  // In "[" and "]"; null where there is none.
  option() {
    if (!this.takes('[')) return null;
    const node = this.row([']']);
    this.expect(']');
    return node;
  }

  // An atom with what stands above and below it.
  scripted() {
    const base = '^_\''.includes(this.peek()) ? row([]) : this.atom();
    let limits = base.dataset.limits === 'yes';
    if (this.takes('\\limits')) limits = true;
    if (this.takes('\\nolimits')) limits = false;
    let below = null;
    let above = null;
    for (;;) {
      if (below === null && this.takes('_')) below = this.argument();
      else if (above === null && this.takes('^')) above = this.argument();
      else if (above === null && this.peek() === "'") above = this.primes();
      else break;
    }
    return withScripts(base, below, above, limits && this.isDisplay);
  }

  primes() {
    let text = '';
    while (this.takes("'")) text += '′';
    const primes = math('mo', {}, text);
    return this.takes('^') ? row([primes, this.argument()]) : primes;
  }

  atom() {
    const token = this.next();
    if (token === '{') {
      const node = this.row(['}']);
      this.expect('}');
      return node;
    }
    if (token.startsWith('\\')) return commandNode(token.slice(1), this);
    if (/^\d/.test(token)) return math('mn', {}, token);
    const sign = SIGNS[token] ?? token;
    if (sign === '\u00a0') return math('mtext', {}, sign);
    if (sign === '|') return math('mo', { stretchy: 'false', lspace: '0', rspace: '0' }, sign);
    // Brackets grow with what is in them behind "\left" alone.
    if (UPRIGHT.test(sign)) return math('mo', { stretchy: 'false' }, sign);
    return math('mi', {}, sign);
  }
}

function withScripts(base, below, above, isStacked) {
  if (below && above) return math(isStacked ? 'munderover' : 'msubsup', {}, base, below, above);
  if (below) return math(isStacked ? 'munder' : 'msub', {}, base, below);
  return above ? math(isStacked ? 'mover' : 'msup', {}, base, above) : base;
}
