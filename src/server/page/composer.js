// Where a message is written: its text and its files. One at the end of the page, and one in the
// place of a message that is edited.

import { readFile } from './attachments.js';
import { el, icon, iconButton, textButton } from './dom.js';
import { fileChip } from './file_chip.js';

const LONGEST_PASTE = 32 * 1024;  // longer texts become files: a text field is slow with them

export class Composer {
  #attachments = [];
  #pasted = 0;
  #chips = el('ul', { className: 'chips', 'aria-label': 'Attached files' });
  #trouble = el('p', { className: 'trouble', role: 'alert' });
  #input;
  #send;
  #stop;
  #onSend;

  // onSend({content, attachments}); onCancel(), where it can be left; onStop(), where it has Stop.
  constructor({ label, placeholder, id, onSend, onCancel, onStop }) {
    this.#onSend = onSend;
    this.#input = el('textarea', { rows: 1, id, placeholder, 'aria-label': label });
    this.#send = el('button', { type: 'submit', className: 'send', title: 'Send (Enter)',
      'aria-label': 'Send' }, icon('send'));
    this.#stop = el('button', { type: 'button', className: 'send stop', title: 'Stop (Esc)',
      'aria-label': 'Stop', onclick: onStop, hidden: true }, icon('stop'));
    const files = el('input', { type: 'file', multiple: true, hidden: true });
    const attach = iconButton('attach', 'Attach text files', () => files.click());
    this.element = el('form', { className: 'composer', 'aria-label': label },
      this.#chips, this.#input, this.#trouble,
      el('div', { className: 'composer-row' }, attach, files, el('span', { className: 'space' }),
        onCancel ? textButton('Cancel', onCancel) : null, this.#stop, this.#send));
    this.#listen(files, onCancel);
    this.#update();
  }

  get isEmpty() {
    return !this.#input.value.trim() && this.#attachments.length === 0;
  }

  focus() {
    this.#input.focus();
  }

  set({ content = '', attachments = [] }) {
    this.#input.value = content;
    this.#attachments = [...attachments];
    this.#trouble.textContent = '';
    this.#update();
  }

  // Whether an answer is being written: it has to end before another message.
  setBusy(isBusy) {
    this.#stop.hidden = !isBusy;
    this.#send.hidden = isBusy;
  }

  async attach(files) {
    this.#trouble.textContent = '';
    for (const file of files) {
      try {
        this.#attachments.push(await readFile(file));
      } catch (error) {
        this.#trouble.textContent = error.message;
      }
    }
    this.#update();
    this.focus();
  }

  #listen(files, onCancel) {
    files.addEventListener('change', () => {
      this.attach([...files.files]);
      files.value = '';
    });
    this.element.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#input.addEventListener('input', () => this.#update());
    this.#input.addEventListener('paste', (event) => this.#paste(event));
    this.#input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.#submit();
      }
      if (event.key === 'Escape' && onCancel) {
        event.stopPropagation();
        onCancel();
      }
    });
  }

  #paste(event) {
    const { files } = event.clipboardData;
    const text = event.clipboardData.getData('text/plain');
    if (files.length > 0) {
      event.preventDefault();
      this.attach([...files]);
    } else if (text.length > LONGEST_PASTE) {
      event.preventDefault();
      this.#pasted += 1;
      this.attach([new File([text], `pasted-${this.#pasted}.txt`)]);
    }
  }

  #submit() {
    if (this.isEmpty || this.#send.hidden) return;
    this.#onSend({ content: this.#input.value.trim(), attachments: this.#attachments });
  }

  #remove(attachment) {
    this.#attachments = this.#attachments.filter((other) => other !== attachment);
    this.#update();
    this.focus();
  }

  #update() {
    this.#send.disabled = this.isEmpty;
    this.#chips.hidden = this.#attachments.length === 0;
    this.#chips.replaceChildren(...this.#attachments.map((attachment) =>
      fileChip(attachment, () => this.#remove(attachment))));
    // As high as its text, within what the style sheet allows.
    this.#input.style.height = 'auto';
    if (this.#input.scrollHeight > 0) this.#input.style.height = `${this.#input.scrollHeight}px`;
  }
}
