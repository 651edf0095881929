// The page as a whole: which conversation is shown, which answers are being written.

import { getProperties, setKey } from './api.js';
import { Chats, keyOf } from './chats.js';
import { contextUse } from './context_bar.js';
import { askForKey, confirmDeletion } from './dialogs.js';
import { sentenceOf, noticeOf } from './notice.js';
import { readingShort } from './reading_bar.js';
import { lostFiles, requestOf } from './request.js';
import { Run } from './run.js';
import { PREFIX } from './store.js';

const SAVE_EVERY_MS = 5000;
const LONGEST_TITLE = 60;
const GO_ON = 'Go on exactly where you stopped.';

export class App {
  properties = null;
  chat = null;
  #runs = new Map();  // by the id of their chat
  #frame = 0;
  #savedAt = 0;

  // parts: {store, settings, thread, sidebar, composer, contextBar, announcer, banner, welcome,
  // modelName}. The thread's and the sidebar's actions are methods of this.
  connectParts(parts) {
    this.parts = parts;
    this.chats = new Chats(parts.store);
  }

  // Asks the server what it is, until it says so.
  async connect() {
    const { banner, settings, modelName } = this.parts;
    try {
      this.properties = await getProperties();
    } catch (error) {
      return this.#showDisconnected(error);
    }
    modelName.textContent = this.properties.model;
    settings.show(this.properties);
    banner.replaceChildren();
    if (this.properties.chat_template === false) {
      banner.append(noticeOf('This model has no chat template: it cannot answer in a chat.'));
    }
    this.#show();
  }

  // A conversation by its id; a new one where there is none.
  open(id) {
    if (this.chat?.id === id) return;
    this.#showChat(this.chats.open(id) ?? this.chats.create());
  }

  startNew() {
    if (location.hash) history.pushState(null, '', location.pathname);
    this.#showChat(this.chats.create());
    this.parts.composer.focus();
  }

  // Another tab has written to the storage.
  noteChange(key) {
    const { id } = this.chat;
    const isThis = key === PREFIX + keyOf(id) && !this.isBusy;
    const chat = isThis ? this.chats.reopen(id) : null;
    if (chat) this.#showChat(chat);
    else this.#showList();
  }

  // The page is left while answers are written.
  saveRunning() {
    for (const id of this.#runs.keys()) this.#save(this.chats.open(id));
  }

  rename(chat, title) {
    this.chats.rename(chat.id, title);
    this.#showList();
  }

  async remove(chat) {
    if (!(await confirmDeletion(chat.title))) return;
    this.#runs.get(chat.id)?.stop();
    this.chats.remove(chat.id);
    if (chat.id === this.chat.id) this.startNew();
    else this.#showList();
  }

  send(message) {
    const { composer } = this.parts;
    this.#say(this.chat.tree.leafId(), message);
    composer.set({});
    composer.focus();
  }

  stop() {
    this.#runs.get(this.chat.id)?.stop();
  }

  get isBusy() {
    return this.#runs.has(this.chat.id);
  }

  // Another message in the place of one of the user.
  edit(node, message) {
    if (this.isBusy) return;
    this.#say(node.parent, message);
    this.parts.composer.focus();
  }

  regenerate(node) {
    if (!this.isBusy) this.#answer(node.parent);
  }

  // In its place where nothing of it came, else as another one.
  retry(node, isWithoutFiles = false) {
    if (this.isBusy) return;
    if (node.content) return this.#answer(node.parent, isWithoutFiles);
    for (const key of ['error', 'finish', 'timings', 'usage', 'kv', 'progress']) delete node[key];
    this.#run(node, isWithoutFiles);
  }

  continue(node) {
    if (!this.isBusy) this.#say(node.id, { content: GO_ON, attachments: [] });
  }

  async askKey(node) {
    const key = await askForKey();
    if (!key) return;
    setKey(key);
    if (!this.properties) await this.connect();
    if (node) this.retry(node);
  }

  step(node, places) {
    const sibling = this.chat.tree.step(node.id, places);
    if (!sibling) return;
    this.chats.save(this.chat);
    this.#show();
    this.parts.thread.focusArrow(sibling, places);
  }

  #say(parentId, { content, attachments }) {
    const { chat } = this;
    const message = { role: 'user', content, ...(attachments.length > 0 && { attachments }) };
    chat.title ||= titleOf(content || attachments[0].name);
    const node = chat.tree.add(parentId, message);
    this.#answer(node.id);
  }

  #answer(parentId, isWithoutFiles = false) {
    const answer = this.chat.tree.add(parentId, { role: 'assistant', content: '' });
    this.#run(answer, isWithoutFiles);
  }

  async #run(answer, isWithoutFiles) {
    const { chat } = this;
    const { thread, settings } = this.parts;
    const path = chat.tree.pathTo(answer.parent);
    const lost = isWithoutFiles ? [] : lostFiles(path);
    if (lost.length > 0) {
      answer.error = { kind: 'lost', message: `Not there any more: ${lost.join(', ')}, too large ` +
        'to keep when the page was left.' };
    } else {
      const request = requestOf(path, settings.values, this.properties);
      const usual = this.properties?.default_generation_settings?.max_tokens ?? -1;
      answer.maxTokens = request.max_tokens ?? usual;
      this.#runs.set(chat.id, new Run(answer, request, () => this.#onRun(chat)));
    }
    this.#save(chat);
    if (location.hash !== `#${chat.id}`) history.pushState(null, '', `#${chat.id}`);
    thread.scrollToEnd();
    this.#show();
    this.#keepFocus();
    await this.#runs.get(chat.id)?.start();
    this.#runs.delete(chat.id);
    this.#onEnd(chat, answer);
  }

  #onEnd(chat, answer) {
    this.#save(chat);
    this.#show();
    this.#keepFocus();
    this.parts.announcer.say(answer.error ? sentenceOf(answer.error) : 'Answer finished.');
    if (answer.error?.kind === 'key' && chat === this.chat) this.askKey(answer);
    if (!answer.error && !this.properties) this.connect();
  }

  // Many times a second: shown once for each frame.
  #onRun(chat) {
    if (Date.now() - this.#savedAt > SAVE_EVERY_MS) this.#save(chat);
    if (chat !== this.chat || this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#showRun();
    });
  }

  #showRun() {
    const run = this.#runs.get(this.chat.id);
    if (!run) return;
    const { thread, announcer } = this.parts;
    thread.update(run.answer, this.#stateOf(run.answer));
    if (run.phase === 'reading') {
      announcer.sayProgress(`${readingShort(run.progress)}.`);
      this.#showContext();
    } else if (run.phase === 'later') {
      announcer.sayProgress('The server is not ready, it is asked again soon.');
    }
  }

  #save(chat) {
    this.#savedAt = Date.now();
    this.chats.save(chat);
  }

  #showChat(chat) {
    this.chat = chat;
    this.parts.thread.clear();
    this.parts.thread.scrollToEnd();
    this.#show();
  }

  #show() {
    const { thread, composer, welcome } = this.parts;
    const path = this.chat.tree.path();
    welcome.hidden = path.length > 0;
    thread.show(path, (node) => this.#stateOf(node));
    composer.setBusy(this.isBusy);
    document.title = this.chat.title ? `${this.chat.title} – godwit` : 'godwit';
    this.#showContext();
    this.#showList();
  }

  // The button that was pressed may be gone. Not on a touch screen: a keyboard would open there.
  #keepFocus() {
    const isLost = document.activeElement === document.body;
    if (isLost && matchMedia('(hover: hover)').matches) this.parts.composer.focus();
  }

  #showContext() {
    const progress = this.#runs.get(this.chat.id)?.progress;
    this.parts.contextBar.update(
      contextUse(this.chat.tree.path(), progress, this.properties?.n_ctx ?? 0));
  }

  #showList() {
    this.parts.sidebar.show(this.chats.list(), this.chat.id, new Set(this.#runs.keys()));
  }

  #stateOf(node) {
    const run = this.#runs.get(this.chat.id);
    return {
      place: this.chat.tree.place(node.id),
      isBusy: this.isBusy,
      run: run?.answer === node ? run : undefined,
      isLast: node.children.length === 0,
    };
  }

  #showDisconnected(error) {
    const { banner } = this.parts;
    if (error.kind === 'key') {
      banner.replaceChildren(noticeOf(sentenceOf(error), { 'Enter the key': () => this.askKey() }));
      if (!document.querySelector('dialog[open]')) this.askKey();
    } else if (error.kind === 'later') {
      banner.replaceChildren(noticeOf(
        `The server is not ready: ${error.message} Trying again every ${error.retryAfter} s.`, {},
        { isError: false }));
      setTimeout(() => this.connect(), error.retryAfter * 1000);
    } else {
      const again = () => {
        banner.replaceChildren();
        this.connect();
      };
      banner.replaceChildren(noticeOf(sentenceOf(error), { 'Try again': again }));
    }
  }
}

function titleOf(text) {
  const line = text.trim().split('\n')[0];
  return line.length > LONGEST_TITLE ? `${line.slice(0, LONGEST_TITLE - 1)}…` : line;
}
