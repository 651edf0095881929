// The conversations of this browser.

import { withoutLarge } from './attachments.js';
import { Tree } from './tree.js';

const INDEX = 'chats';
export const keyOf = (id) => `chat.${id}`;

export class Chats {
  #store;
  #open = new Map();  // with their large files, which are not stored

  constructor(store) {
    this.#store = store;
  }

  // {id, title, updated}, the latest first. Read anew each time: other tabs write it, too.
  list() {
    const index = this.#store.read(INDEX);
    return Array.isArray(index) ? index.sort((a, b) => b.updated - a.updated) : [];
  }

  // Kept when it is saved, not before.
  create() {
    const id = `c-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
    return { id, title: '', tree: new Tree() };
  }

  // null: there is none.
  open(id) {
    const open = this.#open.get(id);
    if (open) return open;
    try {
      const { title, nodes } = this.#store.read(keyOf(id));
      const chat = { id, title, tree: new Tree(nodes.map(asInterrupted)) };
      this.#open.set(id, chat);
      return chat;
    } catch {
      return null;
    }
  }

  // As another tab has left it.
  reopen(id) {
    this.#open.delete(id);
    return this.open(id);
  }

  save(chat) {
    if (chat.isDeleted) return;
    this.#open.set(chat.id, chat);
    this.#store.write(keyOf(chat.id),
      { title: chat.title, nodes: chat.tree.toJSON().map(withoutLarge) });
    this.#writeIndex(chat.id, { id: chat.id, title: chat.title, updated: Date.now() });
  }

  rename(id, title) {
    const chat = this.open(id);
    if (!chat) return;
    chat.title = title;
    this.save(chat);
  }

  remove(id) {
    const chat = this.#open.get(id);
    if (chat) chat.isDeleted = true;  // an answer that is being written saves it no more
    this.#open.delete(id);
    this.#store.remove(keyOf(id));
    this.#writeIndex(id, null);
  }

  #writeIndex(id, entry) {
    const others = this.list().filter((other) => other.id !== id);
    this.#store.write(INDEX, entry ? [entry, ...others] : others);
  }
}

// The page was closed while this was written.
function asInterrupted(node) {
  const isUnfinished = node.role === 'assistant' && !node.finish && !node.error;
  if (!isUnfinished) return node;
  return { ...node, error: { kind: 'broken', message: 'The page was closed meanwhile.' } };
}
