// The page as a whole: which conversation is shown, which answers are being written.

import { setKey } from './api.js';
import { Chats, keyOf } from './chats.js';
import { Connection } from './connection.js';
import { contextUse } from './context_bar.js';
import { forgettingChoice, limitOf } from './context_limit.js';
import { askForKey, confirmDeletion } from './dialogs.js';
import { sentenceOf } from './notice.js';
import { readingShort } from './reading_bar.js';
import { lostFiles, requestOf } from './request.js';
import { Run } from './run.js';
import { PREFIX } from './store.js';
import { titleOf } from './titles.js';

const SAVE_EVERY_MS = 5000;
const GO_ON = 'Go on exactly where you stopped.';

export class App {
  properties = null;
  chat = null;
  #runs = new Map();  // by the id of their chat
  #frame = 0;
  #savedAt = 0;
  #query = '';
  #connection;

  // parts: {store, settings, thread, sidebar, composer, contextBar, announcer, banner, welcome,
  // modelName, systemMessage, exportButton}. The thread's, the sidebar's and the context bar's
  // actions are methods of this.
  connectParts(parts) {
    this.parts = parts;
    this.chats = new Chats(parts.store);
    this.#connection = new Connection(parts.banner, {
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
    this.parts.settings.show(properties);
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

  // chat: of parseChat. It is added to the others and shown.
  add(chat) {
    const added = Object.assign(this.chats.create(), { title: chat.title, system: chat.system });
    for (const message of chat.messages) added.tree.add(added.tree.leafId(), message);
    this.chats.save(added);
    history.pushState(null, '', `#${added.id}`);
    this.#showChat(added);
  }

  search(query) {
    this.#query = query;
    this.#showList();
  }

  // What the model is told besides its messages.
  get system() {
    return this.chat.system ?? this.parts.settings.values.system;
  }

  // Another tab has written to the storage.
  noteChange(key) {
    const { id } = this.chat;
    const isThis = key === PREFIX + keyOf(id) && !this.isBusy;
    const chat = isThis ? this.chats.reopen(id) : null;
    if (chat) this.#showChat(chat);
    else this.#showList();
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

  editWithout(node, file) {
    const attachments = node.attachments.filter((other) => other !== file);
    if (attachments.length === 0 && !node.content) this.beginEdit(node);
    else this.edit(node, { content: node.content, attachments });
  }

  beginEdit(node) {
    if (!this.isBusy) this.parts.thread.edit(node);
  }

  // {used, limit} of the context by what comes before this message; without one, by all.
  roomBefore(node) {
    const path = node ? this.chat.tree.pathTo(node.parent) : this.chat.tree.path();
    return { used: contextUse(path, null, 0)?.used ?? 0, limit: this.#limit };
  }

  // From here on the chat keeps its beginning and its end alone.
  retryForgetting(node) {
    this.chat.kv = forgettingChoice(this.properties);
    this.retry(node);
  }

  continueForgetting(node) {
    this.chat.kv = forgettingChoice(this.properties);
    this.continue(node);
  }

  // As the settings say.
  keepEverything() {
    delete this.chat.kv;
    this.chats.save(this.chat);
    this.#show();
  }

  get #kv() {
    return this.chat.kv ?? this.parts.settings.values.kv;
  }

  get #limit() {
    return limitOf(this.properties, this.#kv);
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
      const own = { ...settings.values, system: this.system, kv: this.#kv };
      const request = requestOf(path, own, this.properties);
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
      contextUse(this.chat.tree.path(), progress, this.#limit), Boolean(this.chat.kv));
    this.parts.composer.showRoom();
  }

  #showList() {
    this.parts.sidebar.show(
      this.chats.search(this.#query), this.chat.id, new Set(this.#runs.keys()));
  }

  #stateOf(node) {
    const run = this.#runs.get(this.chat.id);
    const choice = forgettingChoice(this.properties);
    return {
      question: this.chat.tree.parentOf(node.id),
      forgetting: choice === this.#kv ? undefined : choice,
      place: this.chat.tree.place(node.id),
      isBusy: this.isBusy,
      run: run?.answer === node ? run : undefined,
      isLast: node.children.length === 0,
    };
  }
}
