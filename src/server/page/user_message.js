// A message of the user.

import { isLost } from './attachments.js';
import { branchArrows } from './branch_arrows.js';
import { Composer } from './composer.js';
import { copyFrom, el, iconButton, textButton } from './dom.js';
import { fileChip } from './file_chip.js';

const LONGEST_SHOWN = 4000;

export class UserMessage {
  #body = el('div', { className: 'bubble' });
  #foot = el('div', { className: 'foot' });

  // actions: see MessageActions.
  constructor(node, actions) {
    this.node = node;
    this.actions = actions;
    this.element = el('article', { className: 'message user', 'aria-label': 'You' },
      this.#body, this.#foot);
    this.#showText();
  }

  update({ place, isBusy }) {
    const copy = iconButton('copy', 'Copy', () => copyFrom(copy, this.node.content));
    const edit = iconButton('edit', 'Edit', () => this.edit());
    edit.disabled = isBusy;
    this.#foot.replaceChildren(copy, edit, ...branchArrows(this.node, place, this.actions));
  }

  #showText() {
    const { content, attachments = [] } = this.node;
    const parts = [];
    if (attachments.length > 0) {
      parts.push(el('ul', { className: 'chips', 'aria-label': 'Attached files' },
        ...attachments.map((file) => fileChip(file))));
    }
    parts.push(...attachments.filter(isLost).map(lossOf));
    if (content) parts.push(shortened(content));
    this.#body.replaceChildren(...parts);
    this.#foot.hidden = false;
  }

  edit() {
    const composer = new Composer({
      label: 'Edit the message',
      room: () => this.actions.roomBefore(this.node),
      onSend: (message) => {
        this.#showText();
        this.actions.edit(this.node, message);
      },
      onCancel: () => {
        this.#showText();
        this.#foot.querySelector('[aria-label="Edit"]')?.focus();
      },
    });
    this.#body.replaceChildren(composer.element);
    this.#foot.hidden = true;
    const attachments = (this.node.attachments ?? []).filter((file) => !isLost(file));
    composer.set({ content: this.node.content, attachments });
    composer.focus();
  }
}

function lossOf(file) {
  return el('p', { className: 'loss' }, `${file.name} is gone: files above 256 KiB are not kept ` +
    'after the page is left. To continue this chat exactly, edit the message and attach ' +
    'the file again.');
}

function shortened(content) {
  const text = el('div', { className: 'plain' });
  if (content.length <= LONGEST_SHOWN) {
    text.append(content);
    return text;
  }
  const all = textButton(`Show all ${content.length.toLocaleString('en')} characters`,
    () => text.replaceChildren(content));
  text.append(`${content.slice(0, LONGEST_SHOWN / 2)}…`, el('div', {}, all));
  return text;
}
