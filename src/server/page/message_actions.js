// What can be done with the messages of the chat that is shown.

import { contextUse } from './context_bar.js';
import { forgettingChoice } from './context_limit.js';

const GO_ON = 'Go on exactly where you stopped.';

export class MessageActions {
  #app;

  constructor(app) {
    this.#app = app;
  }

  // Another message in the place of one of the user.
  edit(node, message) {
    if (this.#app.isBusy) return;
    this.#app.say(node.parent, message);
    this.#app.parts.composer.focus();
  }

  editWithout(node, file) {
    const attachments = node.attachments.filter((other) => other !== file);
    if (attachments.length === 0 && !node.content) this.beginEdit(node);
    else this.edit(node, { content: node.content, attachments });
  }

  beginEdit(node) {
    if (!this.#app.isBusy) this.#app.parts.thread.edit(node);
  }

  // {used, limit, canForget (there is an attention without a limit)}, of the context by what comes
  // before this message; without one, by all.
  roomBefore(node) {
    const path = node ? this.#app.chat.tree.pathTo(node.parent) : this.#app.chat.tree.path();
    return {
      used: contextUse(path, null, 0)?.used ?? 0,
      limit: this.#app.limit,
      canForget: Boolean(forgettingChoice(this.#app.properties)),
    };
  }

  // From here on the chat keeps its beginning and its end alone.
  retryForgetting(node) {
    this.#app.chat.kv = forgettingChoice(this.#app.properties);
    this.retry(node);
  }

  continueForgetting(node) {
    this.#app.chat.kv = forgettingChoice(this.#app.properties);
    this.continue(node);
  }

  // As the settings say.
  keepEverything() {
    delete this.#app.chat.kv;
    this.#app.chats.save(this.#app.chat);
    this.#app.show();
  }

  regenerate(node) {
    if (!this.#app.isBusy) this.#app.answer(node.parent);
  }

  // In its place where nothing of it came, else as another one.
  retry(node, isWithoutFiles = false) {
    if (this.#app.isBusy) return;
    if (node.content) return this.#app.answer(node.parent, isWithoutFiles);
    for (const key of ['error', 'finish', 'timings', 'usage', 'kv', 'progress']) delete node[key];
    this.#app.run(node, isWithoutFiles);
  }

  continue(node) {
    if (!this.#app.isBusy) this.#app.say(node.id, { content: GO_ON, attachments: [] });
  }

  step(node, places) {
    const sibling = this.#app.chat.tree.step(node.id, places);
    if (!sibling) return;
    this.#app.chats.save(this.#app.chat);
    this.#app.show();
    this.#app.parts.thread.focusArrow(sibling, places);
  }

  askKey(node) {
    return this.#app.askKey(node);
  }
}
