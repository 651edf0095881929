// Where a message is written: its text and its files. One at the end of the page, and one in the
// place of a message that is edited.

import { readFile } from './attachments.js';
import { el, icon, iconButton, textButton } from './dom.js';
import { chipState, fileChip } from './file_chip.js';
import { Price } from './price.js';
import { RoomLine } from './room_line.js';
import { tokensOf } from './token_count.js';

// What is written beside files is guessed by its length, and so is a text of so many characters; in
// steps, as each is read aloud.
const SHORTEST_GUESSED = 2000;
const CHARACTERS_OF_TOKEN = 4;
const TOKENS_OF_STEP = 50;

const LONGEST_PASTE = 32 * 1024;  // longer texts become files: a text field is slow with them

export class Composer {
  #attachments = [];
  #shown = [];  // of these, in their chips
  #pasted = 0;
  #chips = el('ul', { className: 'chips', 'aria-label': 'Attached files' });
  #trouble = el('p', { className: 'trouble', role: 'alert' });
  #input;
  #send;
  #stop;
  #onSend;
  #room;
  #request;
  #roomLine = new RoomLine();
  #price = new Price(() => this.showRoom());
  #priced = '';  // what the price was asked for
  #counts = new Map();  // of attachments: what ends the counting

  // onSend({content, attachments}); onCancel(), where it can be left; onStop(), where it has Stop.
  // room(): {used, limit, canForget}, as RoomLine has it, by what comes before the message.
  // request(message): the request with it, of which the price is asked; null: not now.
  constructor({ label, placeholder, id, onSend, onCancel, onStop, room, request }) {
    this.#onSend = onSend;
    this.#room = room;
    this.#request = request;
    this.#input = el('textarea', { rows: 1, id, placeholder, 'aria-label': label });
    this.#send = el('button', { type: 'submit', className: 'send', title: 'Send (Enter)',
      'aria-label': 'Send' }, icon('send'));
    this.#stop = el('button', { type: 'button', className: 'send stop', title: 'Stop (Esc)',
      'aria-label': 'Stop', onclick: onStop, hidden: true }, icon('stop'));
    const files = el('input', { type: 'file', multiple: true, hidden: true });
    const attach = iconButton('attach', 'Attach text files', () => files.click());
    this.element = el('form', { className: 'composer', 'aria-label': label },
      this.#chips, this.#input, this.#trouble, this.#roomLine.element,
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
    this.#countAll();
  }

  // What comes before the message is other than it was.
  showRoom() {
    const counted = this.#attachments.filter((file) => file.tokens);
    const { length } = this.#input.value;
    const isLong = this.#attachments.length > 0 || length > SHORTEST_GUESSED;
    const steps = Math.floor(length / CHARACTERS_OF_TOKEN / TOKENS_OF_STEP);
    const written = isLong ? steps * TOKENS_OF_STEP : 0;
    this.#roomLine.show({
      count: counted.reduce((sum, { tokens }) => sum + tokens.count, written),
      isMore: counted.some(({ tokens }) => tokens.isMore),
      isCounting: this.#counts.size > 0,
    }, this.#room(), this.#priceOf(isLong && this.#counts.size === 0));
  }

  // The price in words, as far as it is known. It is asked anew when the message is another one.
  #priceOf(isWanted) {
    const files = this.#attachments.map(({ name, text }) => `${name} ${text?.length}`);
    const message = isWanted ? JSON.stringify([this.#input.value, files]) : '';
    if (message !== this.#priced) {
      this.#priced = message;
      if (isWanted && this.#request) {
        this.#price.ask(() => this.#request(this.#message()));
      } else {
        this.#price.forget();
      }
    }
    return this.#price.words;
  }

  #message() {
    return { content: this.#input.value.trim(), attachments: this.#attachments };
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
    await this.#countAll();
  }

  // One after the other. Without a server that counts, files have their sizes alone.
  async #countAll() {
    for (const [file, abort] of this.#counts) {
      if (!this.#attachments.includes(file)) abort.abort();
    }
    const waiting = this.#attachments.filter((file) => !file.tokens && !this.#counts.has(file));
    for (const file of waiting) this.#counts.set(file, new AbortController());
    for (const file of waiting) {
      const { signal } = this.#counts.get(file);
      this.#showFiles();
      try {
        signal.throwIfAborted();
        file.tokens = await tokensOf(file.text, signal);
      } catch {
        // It is sent all the same.
      }
      this.#counts.delete(file);
    }
    this.#showFiles();
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
    this.#price.forget();
    this.#onSend(this.#message());
  }

  #remove(attachment) {
    this.#attachments = this.#attachments.filter((other) => other !== attachment);
    this.#counts.get(attachment)?.abort();
    this.#update();
    this.focus();
  }

  #update() {
    this.#send.disabled = this.isEmpty;
    this.#showFiles();
    // As high as its text, within what the style sheet allows.
    this.#input.style.height = 'auto';
    if (this.#input.scrollHeight > 0) this.#input.style.height = `${this.#input.scrollHeight}px`;
  }

  #showFiles() {
    const files = this.#attachments;
    this.#chips.hidden = files.length === 0;
    if (files.length === this.#shown.length && files.every((file, i) => file === this.#shown[i])) {
      const states = this.#chips.querySelectorAll('.chip-size');
      files.forEach((file, i) => { states[i].textContent = chipState(file); });
    } else {
      this.#shown = [...files];
      this.#chips.replaceChildren(...files.map((file) =>
        fileChip(file, () => this.#remove(file))));
    }
    this.showRoom();
  }
}
