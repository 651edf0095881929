// The page as a whole: which conversation is shown, which answers are being written.

import { setKey } from './api.js';
import { ChatList } from './chat_list.js';
import { Chats, idOf } from './chats.js';
import { Connection } from './connection.js';
import { contextUse } from './context_bar.js';
import { forgettingChoice, limitOf } from './context_limit.js';
import { askForKey } from './dialogs.js';
import { MessageActions } from './message_actions.js';
import { sentenceOf } from './notice.js';
import { readingShort } from './reading_bar.js';
import { lostFiles, requestOf } from './request.js';
import { Run } from './run.js';
import { PREFIX } from './store.js';
import { titleOf } from './titles.js';

const SAVE_EVERY_MS = 5000;

export class App {
  properties = null;
  chat = null;
  list = new ChatList(this);
  actions = new MessageActions(this);
  #runs = new Map();  // by the id of their chat
  #frame = 0;
  #savedAt = 0;
  #connection;

  // parts: {store, settings, thread, sidebar, composer, contextBar, announcer, banner, welcome,
  // modelName, modelChoice, systemMessage, exportButton}. What the thread and the context bar can
  // do are methods of `actions`, the sidebar's of `list`.
  connectParts(parts) {
    this.parts = parts;
    this.chats = new Chats(parts.store);
    this.#connection = new Connection(parts.banner, {
      model: () => this.parts.modelChoice.chosen,
      askKey: () => this.askKey(),
      onProperties: (properties) => this.#take(properties),
    });
  }

  connect() {
    return this.#connection.connect();
  }

  #take(properties) {
    this.properties = properties;
    this.parts.modelName.textContent = properties.model;
    this.parts.modelChoice.show(properties);
    this.parts.settings.show(properties);
    this.show();
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

  // chat: of parseChat. It is added to the others and shown.
  add(chat) {
    const added = Object.assign(this.chats.create(), { title: chat.title, system: chat.system });
    for (const message of chat.messages) added.tree.add(added.tree.leafId(), message);
    this.chats.save(added);
    history.pushState(null, '', `#${added.id}`);
    this.parts.sidebar.toggle(false, false);
    this.#showChat(added);
  }

  // What the chat asks for: its attention, how much that can read (0: anything), and what the model
  // is told besides the messages.
  get kv() {
    return this.chat.kv ?? this.parts.settings.values.kv;
  }

  get limit() {
    return limitOf(this.properties, this.kv);
  }

  get system() {
    return this.chat.system ?? this.parts.settings.values.system;
  }

  // Another tab has written to the storage.
  noteChange(key) {
    const id = idOf(key?.slice(PREFIX.length) ?? '');
    const chat = id && !this.#runs.has(id) ? this.chats.reopen(id) : null;
    if (chat?.id === this.chat.id) this.#showChat(chat);
    else this.list.show();
  }

  // The settings are others.
  showSettings() {
    if (this.chat) this.#showContext();
  }

  // The page is left while answers are written.
  leave() {
    for (const [id, run] of this.#runs) {
      run.leave();
      this.#save(this.chats.open(id));
    }
  }

  send(message) {
    const { composer } = this.parts;
    this.say(this.chat.tree.leafId(), message);
    composer.set({});
    composer.focus();
  }

  // The request with a message that is not sent yet; null while it would disturb another.
  requestWith({ content, attachments }) {
    const { settings, modelChoice } = this.parts;
    if (!this.properties || this.properties.loaded === false || this.isBusy) return null;
    const path = [...this.chat.tree.path(), { role: 'user', content, attachments }];
    const own = { ...settings.values, system: this.system, kv: this.kv };
    return requestOf(path, own, this.properties, modelChoice.current);
  }

  stop() {
    this.#runs.get(this.chat.id)?.stop();
  }

  stopIn(chat) {
    this.#runs.get(chat.id)?.stop();
  }

  get busyIds() {
    return new Set(this.#runs.keys());
  }

  get isBusy() {
    return this.#runs.has(this.chat.id);
  }

  async askKey(node) {
    const key = await askForKey();
    if (!key) return;
    setKey(key);
    if (!this.properties) await this.connect();
    if (node) this.actions.retry(node);
  }

  say(parentId, { content, attachments }) {
    const { chat } = this;
    const message = { role: 'user', content, ...(attachments.length > 0 && { attachments }) };
    chat.title ||= titleOf(content || attachments[0].name);
    const node = chat.tree.add(parentId, message);
    this.answer(node.id);
  }

  answer(parentId, isWithoutFiles = false) {
    const answer = this.chat.tree.add(parentId, { role: 'assistant', content: '' });
    this.run(answer, isWithoutFiles);
  }

  async run(answer, isWithoutFiles) {
    const { chat } = this;
    const { thread, settings, modelChoice } = this.parts;
    const path = chat.tree.pathTo(answer.parent);
    const lost = isWithoutFiles ? [] : lostFiles(path);
    if (lost.length > 0) {
      answer.error = { kind: 'lost', message: 'No longer available: ' +
        `${lost.join(', ')}, too large to keep after the page was left.` };
    } else {
      const own = { ...settings.values, system: this.system, kv: this.kv };
      const request = requestOf(path, own, this.properties, modelChoice.current);
      const usual = this.properties?.default_generation_settings?.max_tokens ?? -1;
      answer.maxTokens = request.max_tokens ?? usual;
      this.#runs.set(chat.id, new Run(answer, request, () => this.#onRun(chat)));
    }
    this.#save(chat);
    if (location.hash !== `#${chat.id}`) history.pushState(null, '', `#${chat.id}`);
    thread.scrollToEnd();
    this.show();
    this.#keepFocus();
    await this.#runs.get(chat.id)?.start();
    this.#runs.delete(chat.id);
    this.#onEnd(chat, answer);
  }

  #onEnd(chat, answer) {
    this.#save(chat);
    this.show();
    this.#keepFocus();
    this.parts.announcer.say(answer.error ? sentenceOf(answer.error) : 'Answer finished.');
    if (answer.error?.kind === 'key' && chat === this.chat) this.askKey(answer);
    // A model that is loaded by use says more of itself afterwards.
    if (!answer.error && (!this.properties || this.properties.loaded === false)) this.connect();
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
    } else if (run.phase === 'later' || run.phase === 'lost') {
      announcer.sayProgress('The server is not ready; the page will ask it again soon.');
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
    this.show();
  }

  show() {
    const { thread, composer, welcome, systemMessage, exportButton } = this.parts;
    const path = this.chat.tree.path();
    welcome.hidden = path.length > 0;
    exportButton.disabled = path.length === 0;
    systemMessage.hidden = !this.chat.system;
    systemMessage.lastElementChild.textContent = this.chat.system ?? '';
    thread.show(path, (node) => this.#stateOf(node));
    composer.setBusy(this.isBusy);
    document.title = this.chat.title ? `${this.chat.title} – godwit` : 'godwit';
    this.#showContext();
    this.list.show();
  }

  // The button that was pressed may be gone. Not on a touch screen: a keyboard would open there.
  #keepFocus() {
    const isLost = document.activeElement === document.body;
    if (isLost && matchMedia('(hover: hover)').matches) this.parts.composer.focus();
  }

  #showContext() {
    const progress = this.#runs.get(this.chat.id)?.progress;
    this.parts.contextBar.update(
      contextUse(this.chat.tree.path(), progress, this.limit), Boolean(this.chat.kv));
    this.parts.composer.showRoom();
  }

  #stateOf(node) {
    const run = this.#runs.get(this.chat.id);
    const choice = forgettingChoice(this.properties);
    return {
      question: this.chat.tree.parentOf(node.id),
      forgetting: choice === this.kv ? undefined : choice,
      isLimited: Boolean(this.properties) && !choice,
      place: this.chat.tree.place(node.id),
      isBusy: this.isBusy,
      run: run?.answer === node ? run : undefined,
      isLast: node.children.length === 0,
    };
  }
}
