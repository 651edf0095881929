// "2/3", and the ways to the other branches.

import { el, iconButton } from './dom.js';

// place: {index, count}, of Tree.place.
export function branchArrows(node, { index, count }, actions) {
  if (count < 2) return [];
  const before = iconButton('left', 'Previous branch', () => actions.step(node, -1));
  const after = iconButton('right', 'Next branch', () => actions.step(node, 1));
  before.disabled = index === 0;
  after.disabled = index === count - 1;
  const place = el('span', { className: 'place' }, `${index + 1}/${count}`);
  place.setAttribute('aria-label', `Branch ${index + 1} of ${count}`);
  place.setAttribute('role', 'img');
  return [el('span', { className: 'arrows' }, before, place, after)];
}
