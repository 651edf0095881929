// The list of the chats, and what is done there.

import { confirmDeletion } from './dialogs.js';

export class ChatList {
  #app;
  #query = '';

  constructor(app) {
    this.#app = app;
  }

  show() {
    const { chats, chat, parts, busyIds } = this.#app;
    parts.sidebar.show(chats.search(this.#query), chat.id, busyIds);
  }

  search(query) {
    this.#query = query;
    this.show();
  }

  rename(chat, title) {
    this.#app.chats.rename(chat.id, title);
    this.show();
  }

  async remove(chat) {
    if (!(await confirmDeletion(chat.title))) return;
    this.#app.stopIn(chat);
    this.#app.chats.remove(chat.id);
    if (chat.id === this.#app.chat.id) this.#app.startNew();
    else this.show();
  }
}
