// How common programming languages are written, as far as colors need it.
//
// words: keywords; line: what begins a comment to the end of the line; spans: what goes over lines,
// [begin, end, kind]; quotes: of strings within a line; isCaseless: keywords in any case; hasChars:
// "'" is of one character; names: what else has a name, by a pattern and its kind.

const C_SPANS = [['/*', '*/', 'comment']];
const words = (text) => new Set(text.split(' '));
const DECORATOR = [/@[\p{L}_][\p{L}\p{N}_.]*/uy, 'meta'];
const DIRECTIVE = [/#[ \t]*[a-z]+/y, 'meta'];
const VARIABLE = [/\$(?:\w+|\{[^}\s]*\}|[@#?*$!-])/y, 'meta'];
const KEY = [/[\p{L}_-][\p{L}\p{N}_.-]*(?=\s*:(?:\s|$))/uy, 'name'];

const C = {
  words: words('auto bool break case catch char class concept const consteval constexpr ' +
    'constinit continue co_await co_return co_yield decltype default delete do double else enum ' +
    'explicit export extern false float for friend goto if inline int long mutable namespace new ' +
    'noexcept nullptr NULL operator override private protected public register requires return ' +
    'short signed sizeof static static_assert static_cast struct switch template this throw true ' +
    'try typedef typename union unsigned using virtual void volatile while'),
  line: ['//'], spans: C_SPANS, quotes: '"', hasChars: true, names: [DIRECTIVE],
};
const JAVASCRIPT = {
  words: words('abstract any as async await boolean break case catch class const constructor ' +
    'continue debugger declare default delete do else enum export extends false finally for from ' +
    'function get if implements import in instanceof interface let new null number of private ' +
    'protected public readonly return set static string super switch this throw true try type ' +
    'typeof undefined var void while with yield'),
  line: ['//'], spans: [...C_SPANS, ['`', '`', 'string']], quotes: '"\'', names: [DECORATOR],
};
const JAVA = {
  words: words('abstract as assert base bool boolean break byte case catch char class const ' +
    'continue data decimal def default do double dynamic else enum extends extension false final ' +
    'finally float for foreach fun func get if implements import in int interface internal is ' +
    'late let long match namespace native new null object open operator out override package ' +
    'partial private protected public readonly record required return sealed set short static ' +
    'string struct super switch synchronized this throw throws trait transient true try type ' +
    'typeof using val var virtual void volatile when where while with yield'),
  line: ['//'], spans: [['"""', '"""', 'string'], ...C_SPANS], quotes: '"\'', names: [DECORATOR],
};
const GO = {
  words: words('any bool break byte case chan const continue default defer else error ' +
    'fallthrough false float32 float64 for func go goto if import int int32 int64 interface iota ' +
    'make map new nil package range return rune select string struct switch true type uint var'),
  line: ['//'], spans: [...C_SPANS, ['`', '`', 'string']], quotes: '"', hasChars: true,
};
const RUST = {
  words: words('as async await bool break char const continue crate dyn else enum extern f32 f64 ' +
    'false fn for i32 i64 if impl in isize let loop match mod move mut pub ref return self Self ' +
    'static str struct super trait true type u8 u32 u64 union unsafe use usize where while'),
  line: ['//'], spans: C_SPANS, quotes: '"', hasChars: true,
  names: [[/#!?\[[^\]]*\]/y, 'meta'], [/\w+!(?=[([{])/y, 'name']],
};
const SWIFT = {
  words: words('actor as associatedtype async await break case catch class continue default ' +
    'defer deinit do else enum extension fallthrough false for func guard if import in init ' +
    'inout internal is let nil open override private protocol public repeat return self static ' +
    'struct subscript super switch throw throws true try typealias var weak where while'),
  line: ['//'], spans: [['"""', '"""', 'string'], ...C_SPANS], quotes: '"', names: [DECORATOR],
};
const PYTHON = {
  words: words('and as assert async await break case class continue def del elif else except ' +
    'False finally for from global if import in is lambda match None nonlocal not or pass raise ' +
    'return self True try while with yield'),
  line: ['#'], spans: [['"""', '"""', 'string'], ["'''", "'''", 'string']], quotes: '"\'',
  names: [DECORATOR],
};
const RUBY = {
  words: words('alias and begin break case class def defined? do else elsif end ensure false for ' +
    'if in module next nil not or redo require rescue retry return self super then true undef ' +
    'unless until when while yield'),
  line: ['#'], spans: [], quotes: '"\'', names: [[/:[a-z_]\w*/y, 'meta'], [/@{1,2}\w+/y, 'meta']],
};
const SHELL = {
  words: words('alias break case cd continue do done echo elif else esac eval exec exit export ' +
    'fi for function if in local read return select set shift source sudo then trap unset until ' +
    'while'),
  line: ['#'], spans: [], quotes: '"\'', names: [VARIABLE], isCommentApart: true,
};
const SQL = {
  words: words('add all alter and as asc avg begin between by case cast check column commit ' +
    'count create cross database default delete desc distinct drop else end except exists false ' +
    'foreign from full group having if in index inner insert intersect into is join key left ' +
    'like limit max min not null offset on or order outer over partition primary references ' +
    'right rollback select set sum table then transaction true union unique update using values ' +
    'view when where with'),
  line: ['--'], spans: C_SPANS, quotes: '"\'', isCaseless: true,
};
const PHP = { ...JAVASCRIPT, line: ['//', '#'], spans: C_SPANS, names: [VARIABLE],
  words: new Set([...JAVASCRIPT.words, 'echo', 'fn', 'foreach', 'namespace', 'use', 'self']) };
const JSON_ = { words: words('true false null'), line: ['//'], spans: C_SPANS, quotes: '"',
  names: [[/"(?:[^"\\]|\\.)*"(?=\s*:)/y, 'name']] };
const YAML = { words: words('true false null yes no'), line: ['#'], spans: [], quotes: '"\'',
  names: [KEY], isCommentApart: true };
const INI = { words: words('true false'), line: ['#', ';'], spans: [], quotes: '"\'',
  names: [[/\[[^\]]*\](?=\s*$)/y, 'meta'], [/[\w.-]+(?=\s*=)/y, 'name']] };
const CSS = { words: new Set(), line: [], spans: C_SPANS, quotes: '"\'',
  names: [[/@[\w-]+/y, 'keyword'], [/#[\da-f]{3,8}\b/iy, 'number'],
    [/[\w-]+(?=\s*:[^:])/y, 'name']] };
const LUA = {
  words: words('and break do else elseif end false for function goto if in local nil not or ' +
    'repeat return then true until while'),
  line: ['--'], spans: [['--[[', ']]', 'comment'], ['[[', ']]', 'string']], quotes: '"\'',
};
const HASKELL = {
  words: words('case class data deriving do else if import in infixl infixr instance let module ' +
    'newtype of then type where'),
  line: ['--'], spans: [['{-', '-}', 'comment']], quotes: '"', hasChars: true,
};
const R = { ...PYTHON, spans: [], words: words('break else FALSE for function if in library Inf ' +
  'NA NaN next NULL repeat return TRUE while') };
const JULIA = { ...PYTHON, words: words('abstract begin break catch const continue do else ' +
  'elseif end export false finally for function global if import in let local macro module ' +
  'mutable nothing quote return struct true try using where while') };
const MAKE = { ...SHELL, names: [[/\$[({][^)}]*[)}]/y, 'meta'], [/^[\w.%/-]+(?=\s*:)/y, 'name']] };
const DOCKER = { ...SHELL, words: words('ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK ' +
  'LABEL RUN SHELL STOPSIGNAL USER VOLUME WORKDIR AS') };
const LATEX = { words: new Set(), line: ['%'], spans: [], quotes: '',
  names: [[/\\(?:[a-zA-Z]+\*?|.)/y, 'keyword']] };

const NAMES = [
  [C, 'c cpp c++ cc h hpp cuda glsl objc'], [JAVA, 'java kotlin kt cs csharp c# scala dart groovy'],
  [JAVASCRIPT, 'javascript js jsx ts tsx typescript mjs'], [GO, 'go golang zig'],
  [RUST, 'rust rs'], [SWIFT, 'swift'], [PYTHON, 'python py python3 ipython gdscript'],
  [RUBY, 'ruby rb elixir ex'], [SHELL, 'bash sh shell zsh console fish powershell ps1'],
  [SQL, 'sql sqlite postgresql mysql'], [PHP, 'php'], [JSON_, 'json jsonc json5 jsonl'],
  [YAML, 'yaml yml'], [INI, 'toml ini conf cfg properties'], [CSS, 'css scss less'],
  [LUA, 'lua'], [HASKELL, 'haskell hs elm'], [R, 'r'], [JULIA, 'julia jl'],
  [MAKE, 'make makefile cmake'], [DOCKER, 'dockerfile docker'], [LATEX, 'latex tex'],
  [{ isMarkup: true }, 'html xml svg vue xhtml'], [{ isDiff: true }, 'diff patch'],
];
const BY_NAME = new Map(NAMES.flatMap(([language, names]) =>
  names.split(' ').map((name) => [name, language])));

// undefined: it is not known, and has no colors.
export const languageOf = (name) => BY_NAME.get(name.toLowerCase());
