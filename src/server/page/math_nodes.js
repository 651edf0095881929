// Elements of MathML.

const MATHML = 'http://www.w3.org/1998/Math/MathML';

export function math(tag, attributes = {}, ...children) {
  const element = document.createElementNS(MATHML, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const row = (nodes) => (nodes.length === 1 ? nodes[0] : math('mrow', {}, ...nodes));

export const space = (em) => math('mspace', { width: `${em}em` });

// text: of several letters, upright.
export const word = (text) => math('mi', { mathvariant: 'normal' }, text);

// lines: of cells. className: 'aligned', columns by turns to the right and to the left, as for a
// chain of equations; 'cases', to the left. isLarge: fractions and sums are as on lines of their
// own.
export function tableOf(lines, className, isLarge = false) {
  return math('mtable', { class: className, displaystyle: String(isLarge) }, ...lines.map((cells) =>
    math('mtr', {}, ...cells.map((cell) => math('mtd', {}, cell)))));
}
