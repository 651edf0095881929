// The commands of LaTeX that stand for a character or a word.

const pairs = (text) => text.trim().split(/\s+/).map((pair) => {
  const at = pair.indexOf(':');
  return [pair.slice(0, at), pair.slice(at + 1)];
});

// Letters and what is set like them.
export const LETTERS = new Map(pairs(`
  alpha:α beta:β gamma:γ delta:δ epsilon:ϵ varepsilon:ε zeta:ζ eta:η theta:θ vartheta:ϑ iota:ι
  kappa:κ varkappa:ϰ lambda:λ mu:μ nu:ν xi:ξ omicron:ο pi:π varpi:ϖ rho:ρ varrho:ϱ sigma:σ
  varsigma:ς tau:τ upsilon:υ phi:ϕ varphi:φ chi:χ psi:ψ omega:ω Gamma:Γ Delta:Δ Theta:Θ Lambda:Λ
  Xi:Ξ Pi:Π Sigma:Σ Upsilon:Υ Phi:Φ Psi:Ψ Omega:Ω infty:∞ partial:∂ nabla:∇ hbar:ℏ hslash:ℏ ell:ℓ
  wp:℘ Re:ℜ Im:ℑ aleph:ℵ beth:ℶ emptyset:∅ varnothing:∅ imath:ı jmath:ȷ top:⊤ bot:⊥ angle:∠
  triangle:△ square:□ Box:□ blacksquare:■ diamond:⋄ lozenge:◊ star:⋆ bigstar:★ circ:∘ degree:°
  clubsuit:♣ diamondsuit:♢ heartsuit:♡ spadesuit:♠ flat:♭ natural:♮ sharp:♯ checkmark:✓ dag:†
  ddag:‡ dagger:† ddagger:‡ S:§ P:¶ pounds:£ copyright:© ldots:… dots:… dotsc:… dotso:… cdots:⋯
  dotsb:⋯ dotsm:⋯ dotsi:⋯ vdots:⋮ ddots:⋱ prime:′ backslash:\\ AA:Å eth:ð complement:∁ `));

// Relations, operations and arrows.
export const OPERATORS = new Map(pairs(`
  pm:± mp:∓ times:× div:÷ cdot:⋅ ast:∗ bullet:∙ oplus:⊕ ominus:⊖ otimes:⊗ oslash:⊘ odot:⊙ cap:∩
  cup:∪ uplus:⊎ sqcap:⊓ sqcup:⊔ vee:∨ lor:∨ wedge:∧ land:∧ setminus:∖ smallsetminus:∖ wr:≀ amalg:⨿
  leq:≤ le:≤ geq:≥ ge:≥ neq:≠ ne:≠ equiv:≡ sim:∼ simeq:≃ approx:≈ cong:≅ propto:∝ asymp:≍ doteq:≐
  coloneqq:≔ triangleq:≜ ll:≪ gg:≫ prec:≺ succ:≻ preceq:⪯ succeq:⪰ leqslant:⩽ geqslant:⩾
  lesssim:≲ gtrsim:≳ subset:⊂ supset:⊃ subseteq:⊆ supseteq:⊇ subsetneq:⊊ supsetneq:⊋ nsubseteq:⊈
  sqsubseteq:⊑ sqsupseteq:⊒ in:∈ ni:∋ notin:∉ mid:∣ nmid:∤ parallel:∥ perp:⊥ vdash:⊢ dashv:⊣
  models:⊨ vDash:⊨ Vdash:⊩ forall:∀ exists:∃ nexists:∄ neg:¬ lnot:¬ therefore:∴ because:∵ to:→
  rightarrow:→ leftarrow:← gets:← leftrightarrow:↔ Rightarrow:⇒ Leftarrow:⇐ Leftrightarrow:⇔
  implies:⟹ impliedby:⟸ iff:⟺ longrightarrow:⟶ longleftarrow:⟵ longleftrightarrow:⟷
  Longrightarrow:⟹ Longleftarrow:⟸ Longleftrightarrow:⟺ mapsto:↦ longmapsto:⟼ hookrightarrow:↪
  hookleftarrow:↩ uparrow:↑ downarrow:↓ updownarrow:↕ Uparrow:⇑ Downarrow:⇓ nearrow:↗ searrow:↘
  swarrow:↙ nwarrow:↖ rightharpoonup:⇀ rightharpoondown:⇁ leftharpoonup:↼ leftharpoondown:↽
  rightleftharpoons:⇌ leadsto:⇝ rightsquigarrow:⇝ twoheadrightarrow:↠ lhd:⊲ rhd:⊳ bowtie:⋈
  colon:: lt:< gt:> surd:√ cdotp:· diamondsuit:♢ nleq:≰ ngeq:≱ ncong:≇ trianglelefteq:⊴ `));

// With their limits above and below where there is room.
export const LARGE = new Map(pairs(`
  sum:∑ prod:∏ coprod:∐ bigcup:⋃ bigcap:⋂ bigvee:⋁ bigwedge:⋀ bigoplus:⨁ bigotimes:⨂ bigodot:⨀
  biguplus:⨄ bigsqcup:⨆ `));
export const INTEGRALS = new Map(pairs(`
  int:∫ iint:∬ iiint:∭ iiiint:⨌ oint:∮ oiint:∯ smallint:∫ `));

export const FENCES = new Map(pairs(`
  lbrace:{ rbrace:} lbrack:[ rbrack:] langle:⟨ rangle:⟩ lfloor:⌊ rfloor:⌋ lceil:⌈ rceil:⌉ vert:|
  Vert:‖ lvert:| rvert:| lVert:‖ rVert:‖ lgroup:⟮ rgroup:⟯ ulcorner:⌜ urcorner:⌝ {:{ }:} |:‖ `));

export const FUNCTIONS = new Set(`arccos arcsin arctan arg cos cosh cot coth csc deg dim exp hom ker
  lg ln log sec sin sinh tan tanh`.split(/\s+/));
export const LIMITS = new Map([...'det gcd inf lim max min Pr sup argmax argmin'.split(' ')
  .map((name) => [name, name]), ['limsup', 'lim sup'], ['liminf', 'lim inf']]);

export const ACCENTS = new Map(pairs(`
  hat:^ widehat:^ bar:¯ overline:¯ vec:→ overrightarrow:→ overleftarrow:← dot:˙ ddot:¨ dddot:⃛
  tilde:~ widetilde:~ acute:´ grave:\u0060 breve:˘ check:ˇ mathring:˚ overbrace:⏞ `));
export const UNDER = new Map(pairs('underline:_ underbrace:⏟ underbar:_'));

// In em.
export const SPACES = new Map([[',', 0.1667], [':', 0.2222], ['>', 0.2222], [';', 0.2778],
  ['!', -0.1667], [' ', 0.25], ['quad', 1], ['qquad', 2], ['thinspace', 0.1667], ['enspace', 0.5],
  ['medspace', 0.2222], ['thickspace', 0.2778], ['enskip', 0.5], ['space', 0.25]]);

// Where the letters of an alphabet begin in Unicode: A, a and 0, and those that stand elsewhere.
const ALPHABETS = {
  mathbf: [0x1d400, 0x1d41a, 0x1d7ce], mathbb: [0x1d538, 0x1d552, 0x1d7d8],
  mathcal: [0x1d49c, 0x1d4b6], mathscr: [0x1d49c, 0x1d4b6], mathfrak: [0x1d504, 0x1d51e],
  mathsf: [0x1d5a0, 0x1d5ba, 0x1d7e2], mathtt: [0x1d670, 0x1d68a, 0x1d7f6],
  boldsymbol: [0x1d468, 0x1d482, 0x1d7ce],
};
const ELSEWHERE = {
  mathbb: { C: 'ℂ', H: 'ℍ', N: 'ℕ', P: 'ℙ', Q: 'ℚ', R: 'ℝ', Z: 'ℤ' },
  mathcal: { B: 'ℬ', E: 'ℰ', F: 'ℱ', H: 'ℋ', I: 'ℐ', L: 'ℒ', M: 'ℳ', R: 'ℛ', e: 'ℯ', g: 'ℊ',
    o: 'ℴ' },
  mathfrak: { C: 'ℭ', H: 'ℌ', I: 'ℑ', R: 'ℜ', Z: 'ℨ' },
};
const SAME = { bm: 'boldsymbol', pmb: 'boldsymbol', mathscr: 'mathcal', bold: 'mathbf',
  Bbb: 'mathbb', mathbfit: 'boldsymbol' };

export const isAlphabet = (name) => name in ALPHABETS || name in SAME;

export function inAlphabet(name, character) {
  const alphabet = SAME[name] ?? name;
  const other = ELSEWHERE[alphabet]?.[character];
  if (other) return other;
  const [upper, lower, digit] = ALPHABETS[alphabet];
  const code = character.charCodeAt(0);
  if (/[A-Z]/.test(character)) return String.fromCodePoint(upper + code - 0x41);
  if (/[a-z]/.test(character)) return String.fromCodePoint(lower + code - 0x61);
  const greek = { mathbf: [0x1d6a8, 0x1d6c2], boldsymbol: [0x1d71c, 0x1d736] }[alphabet];
  if (greek && /[Α-Ω]/.test(character)) return String.fromCodePoint(greek[0] + code - 0x391);
  if (greek && /[α-ω]/.test(character)) return String.fromCodePoint(greek[1] + code - 0x3b1);
  if (/\d/.test(character) && digit) return String.fromCodePoint(digit + code - 0x30);
  return character;
}
