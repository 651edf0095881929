// The commands of LaTeX, each with its MathML.

import { inAlphabet, isAlphabet, ACCENTS, FENCES, FUNCTIONS, INTEGRALS, LARGE, LETTERS, LIMITS,
  OPERATORS, SPACES, UNDER } from './math_symbols.js';
import { math, row, space, tableOf, word } from './math_nodes.js';

const BIG = /^([bB]igg?)[lrm]?$/;
const BIG_EM = { big: 1.2, Big: 1.6, bigg: 2.1, Bigg: 2.6 };
const COLORS = new Set(['color', 'textcolor', 'colorbox']);
// What changes sizes that are right as they are, numbers that nobody refers to, and names of those.
const NOTHING = new Set(['displaystyle', 'textstyle', 'scriptstyle', 'nonumber', 'notag', 'hline',
  'limits', 'nolimits', 'mathstrut', 'strut', 'allowbreak', 'centering', 'rm', 'bf', 'it', 'cal']);
const UNREAD = new Set(['label', 'hspace', 'vspace', 'hskip', 'hspace*']);
const TEXTS = new Set(['text', 'textrm', 'textbf', 'textit', 'textsf', 'texttt', 'textnormal',
  'mbox', 'hbox', 'intertext']);
const WORDS = new Set(['mathrm', 'operatorname', 'operatorname*', 'mathop', 'mathnormal']);
const FRACTIONS = new Set(['frac', 'dfrac', 'tfrac', 'cfrac']);
const BINOMIALS = new Set(['binom', 'dbinom', 'tbinom']);
const BRACKETS = { matrix: '', smallmatrix: '', array: '', pmatrix: '()', bmatrix: '[]',
  Bmatrix: '{}', vmatrix: '', Vmatrix: '‖‖', cases: '{', rcases: ' }', dcases: '{' };
const ALIGNED = /^(?:align|aligned|alignat|alignedat|split|eqnarray|flalign)\*?$/;
const GATHERED = /^(?:gather|gathered|equation|multline|displaymath|math)\*?$/;

// name: without its "\"; what follows comes of the parser.
export function commandNode(name, parser) {
  if (LETTERS.has(name)) return letterNode(LETTERS.get(name));
  if (OPERATORS.has(name)) return math('mo', {}, OPERATORS.get(name));
  if (/^[%$#&_]$/.test(name)) return word(name);
  if (LARGE.has(name)) return largeNode(LARGE.get(name), true);
  if (INTEGRALS.has(name)) return largeNode(INTEGRALS.get(name), false);
  if (FENCES.has(name)) return math('mo', { stretchy: 'false' }, FENCES.get(name));
  if (SPACES.has(name)) return space(SPACES.get(name));
  if (FUNCTIONS.has(name)) return functionNode(name);
  if (LIMITS.has(name)) return functionNode(LIMITS.get(name), true);
  if (isAlphabet(name)) return inLetters(name, parser.argument());
  if (ACCENTS.has(name)) return accentNode(name, parser);
  if (UNDER.has(name)) return underNode(name, parser);
  if (FRACTIONS.has(name)) return math('mfrac', {}, parser.argument(), parser.argument());
  if (BINOMIALS.has(name)) {
    return fenced('(', math('mfrac', { linethickness: '0' }, parser.argument(), parser.argument()),
      ')');
  }
  if (TEXTS.has(name)) return textNode(name, parser.textArgument());
  if (WORDS.has(name)) return wordNode(name, parser);
  if (BIG.test(name)) return bigNode(name, parser);
  if (NOTHING.has(name)) return row([]);
  if (UNREAD.has(name)) {
    parser.textArgument();
    return row([]);
  }
  if (COLORS.has(name)) return colored(name, parser);
  return own(COMMANDS, name)?.(parser) ?? unknown(name);
}

const own = (object, name) => (Object.hasOwn(object, name) ? object[name] : undefined);

// Capitals of Greek stand upright.
const letterNode = (letter) => (/[Α-Ω]/.test(letter) ? word(letter) : math('mi', {}, letter));

// As it is written.
const unknown = (name) => math('mtext', { class: 'unknown' }, `\\${name}`);

const COMMANDS = {
  sqrt: (parser) => {
    const index = parser.option();
    const inner = parser.argument();
    return index ? math('mroot', {}, inner, index) : math('msqrt', {}, inner);
  },
  left: (parser) => {
    const open = fenceOf(parser);
    const inner = [];
    for (;;) {
      inner.push(parser.row(['\\right', '\\middle']));
      if (!parser.takes('\\middle')) break;
      inner.push(fenceNode(fenceOf(parser), 'infix'));
    }
    parser.expect('\\right');
    return fenced(open, row(inner), fenceOf(parser));
  },
  begin: (parser) => environment(parser),
  overset: (parser) => stacked('mover', parser),
  stackrel: (parser) => stacked('mover', parser),
  underset: (parser) => stacked('munder', parser),
  xrightarrow: (parser) => arrow('→', parser),
  xleftarrow: (parser) => arrow('←', parser),
  substack: (parser) => {
    parser.expect('{');
    const lines = parser.lines(['}']);
    parser.expect('}');
    return tableOf(lines, '');
  },
  boxed: (parser) => math('mrow', { class: 'boxed' }, parser.argument()),
  phantom: (parser) => math('mphantom', {}, parser.argument()),
  not: (parser) => {
    const negated = parser.argument();
    negated.append('\u0338');
    return negated;
  },
  bmod: () => math('mo', { lspace: '0.22em', rspace: '0.22em' }, 'mod'),
  mod: (parser) => row([space(1), word('mod'), space(0.33), parser.argument()]),
  pmod: (parser) => row([space(1), math('mo', { stretchy: 'false' }, '('), word('mod'),
    space(0.33), parser.argument(), math('mo', { stretchy: 'false' }, ')')]),
  tag: (parser) => row([space(2), math('mtext', {}, `(${parser.textArgument()})`)]),
  mathit: (parser) => parser.argument(),
  ensuremath: (parser) => parser.argument(),
};

function largeNode(character, hasLimits) {
  const node = math('mo', {}, character);
  if (hasLimits) node.dataset.limits = 'yes';
  return node;
}

// By its name, which the parser sets apart from what is beside it.
function functionNode(name, hasLimits = false) {
  const node = word(name);
  node.dataset.isFunction = 'yes';
  if (hasLimits) node.dataset.limits = 'yes';
  return node;
}

// All letters of what is given, in place.
function inLetters(alphabet, node) {
  const leaves = node.childElementCount === 0 ? [node] : node.querySelectorAll('mi, mn');
  for (const leaf of leaves) {
    leaf.textContent = [...leaf.textContent].map((it) => inAlphabet(alphabet, it)).join('');
  }
  return node;
}

function accentNode(name, parser) {
  const grows = /^(?:wide|over)/.test(name);
  const node = math('mover', { accent: 'true' }, parser.argument(),
    math('mo', { stretchy: String(grows) }, ACCENTS.get(name)));
  if (name === 'overbrace') node.dataset.limits = 'yes';
  return node;
}

function underNode(name, parser) {
  const node = math('munder', { accentunder: 'true' }, parser.argument(),
    math('mo', { stretchy: 'true' }, UNDER.get(name)));
  if (name === 'underbrace') node.dataset.limits = 'yes';
  return node;
}

// Spaces at its ends stand apart, too.
function textNode(name, text) {
  const style = { textbf: { class: 'bold' }, textit: { class: 'italic' } }[name] ?? {};
  return math('mtext', style, text.replace(/^\s+|\s+$/g, '\u00a0').replace(/\$/g, ''));
}

function wordNode(name, parser) {
  const inner = parser.argument();
  inner.querySelectorAll('mspace').forEach((gap) => gap.append('\u2009'));
  const text = inner.textContent;
  const isPlain = [inner, ...inner.querySelectorAll('*')].every((node) =>
    ['mi', 'mn', 'mrow', 'mo', 'mspace'].includes(node.localName));
  if (!isPlain || !text) return inner;
  return name.startsWith('operatorname') ? functionNode(text, name.endsWith('*')) : word(text);
}

function bigNode(name, parser) {
  const size = BIG_EM[BIG.exec(name)[1]];
  return math('mo', { stretchy: 'true', symmetric: 'true', minsize: `${size}em`,
    maxsize: `${size}em` }, fenceOf(parser));
}

function colored(name, parser) {
  parser.textArgument();
  return name === 'color' ? row([]) : parser.argument();
}

// The character of what follows; '' for none.
function fenceOf(parser) {
  const token = parser.next();
  if (token === '.') return '';
  if (token === '<') return '⟨';
  if (token === '>') return '⟩';
  if (/^[()[\]|/]$/.test(token)) return token;
  const name = token.slice(1);
  const fence = token.startsWith('\\') && (FENCES.get(name) ?? OPERATORS.get(name) ??
    (name === 'backslash' ? '\\' : undefined));
  if (!fence) throw new SyntaxError(`no fence ${token}`);
  return fence;
}

const fenceNode = (character, form) =>
  math('mo', { form, fence: 'true', stretchy: 'true', symmetric: 'true' }, character);

function fenced(open, inner, close) {
  return math('mrow', {}, ...(open.trim() ? [fenceNode(open, 'prefix')] : []), inner,
    ...(close.trim() ? [fenceNode(close, 'postfix')] : []));
}

function stacked(tag, parser) {
  const other = parser.argument();
  return math(tag, {}, parser.argument(), other);
}

function arrow(character, parser) {
  const below = parser.option();
  const above = parser.argument();
  const node = math('mo', { stretchy: 'true', minsize: '2em' }, character);
  return below ? math('munderover', {}, node, below, above) : math('mover', {}, node, above);
}

function environment(parser) {
  const name = parser.textArgument();
  const plain = name.replace(/\*$/, '');
  const isAligned = ALIGNED.test(name);
  if (!isAligned && !GATHERED.test(name) && own(BRACKETS, plain) === undefined) {
    throw new SyntaxError(`no environment ${name}`);
  }
  if (plain === 'array' || plain.startsWith('alignat') || plain === 'alignedat') {
    parser.textArgument();
  }
  const lines = parser.lines(['\\end']);
  parser.expect('\\end');
  if (parser.textArgument() !== name) throw new SyntaxError(`no end of ${name}`);
  if (isAligned) return tableOf(lines, 'aligned', true);
  if (GATHERED.test(name)) return lines.length === 1 ? row(lines[0]) : tableOf(lines, '', true);
  // Bars as borders: a character for them grows with few fonts.
  if (plain === 'vmatrix') return tableOf(lines, 'bars');
  const [open = '', close = ''] = BRACKETS[plain];
  const isCases = plain.endsWith('cases');
  return fenced(open, tableOf(lines, isCases ? 'cases' : '', plain === 'dcases'), close);
}
