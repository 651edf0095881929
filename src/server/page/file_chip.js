// A file by its name and size; its text is never shown, it may have megabytes.

import { isLost } from './attachments.js';
import { el, icon, iconButton } from './dom.js';
import { bytes, tokens } from './format.js';

// onRemove(): where it can be removed.
export function fileChip(file, onRemove) {
  return el('li', { className: isLost(file) ? 'chip lost' : 'chip' },
    icon('file'),
    el('span', { className: 'chip-name', title: file.name }, file.name),
    el('span', { className: 'chip-size' }, chipState(file)),
    onRemove ? iconButton('close', `Remove ${file.name}`, onRemove, 'icon-button small') : null);
}

export function chipState(file) {
  if (isLost(file)) return 'gone';
  if (!file.tokens) return bytes(file.size);
  const { count, isMore } = file.tokens;
  return `${bytes(file.size)} · ${isMore ? 'over ' : ''}${tokens(count)}`;
}
