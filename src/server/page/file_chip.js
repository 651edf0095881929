// A file by its name and size; its text is never shown, it may have megabytes.

import { isLost } from './attachments.js';
import { el, icon, iconButton } from './dom.js';
import { bytes } from './format.js';

// onRemove(): where it can be removed.
export function fileChip(file, onRemove) {
  const state = isLost(file) ? 'gone' : bytes(file.size);
  return el('li', { className: isLost(file) ? 'chip lost' : 'chip' },
    icon('file'),
    el('span', { className: 'chip-name', title: file.name }, file.name),
    el('span', { className: 'chip-size' }, state),
    onRemove ? iconButton('close', `Remove ${file.name}`, onRemove, 'icon-button small') : null);
}
