// The conversations of this browser.

import { withoutLarge } from './attachments.js';
import { Tree } from './tree.js';

const INDEX = 'chats';
const keyOf = (id) => `chat.${id}`;
export const idOf = (key) => /^chat\.(.+)$/.exec(key)?.[1];  // undefined: it is no chat's

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

  // {id, title, tree}, and where they are other than the settings say, `system` (its message) and
  // `kv`. Kept when it is saved, not before.
  create() {
    const id = `c-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
    return { id, title: '', tree: new Tree() };
  }

  // null: there is none.
  open(id) {
    const open = this.#open.get(id);
    if (open) return open;
    try {
      const { title, system, kv, nodes } = this.#store.read(keyOf(id));
      const chat = { id, title, system, kv, tree: new Tree(nodes.map(asInterrupted)) };
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
    const { title, system, kv, tree } = chat;
    const nodes = tree.toJSON().map(withoutLarge);
    this.#store.write(keyOf(chat.id), { title, system, kv, nodes });
    this.#writeIndex(chat.id, { id: chat.id, title: chat.title, updated: Date.now() });
  }

  // Those with all words of `query` in their titles and texts, with a `snippet` around the first
  // word where it stands in a text.
  search(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return this.list();
    return this.list().flatMap((entry) => {
      const texts = this.#textsOf(entry.id);
      const all = [entry.title, ...texts].join('\n').toLowerCase();
      if (!words.every((word) => all.includes(word))) return [];
      return [{ ...entry, snippet: snippetOf(texts, words[0]) }];
    });
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

  // Not opened for this, as another tab may go on with it.
  #textsOf(id) {
    try {
      const nodes = this.#open.get(id)?.tree.toJSON() ?? this.#store.read(keyOf(id)).nodes;
      return nodes.flatMap(({ content = '', attachments = [] }) =>
        [content, ...attachments.map(({ name, text = '' }) => `${name}\n${text}`)]);
    } catch {
      return [];
    }
  }

  #writeIndex(id, entry) {
    const others = this.list().filter((other) => other.id !== id);
    this.#store.write(INDEX, entry ? [entry, ...others] : others);
  }
}

// The page was closed while this was written.
function asInterrupted(node) {
  const isUnfinished = node.role === 'assistant' && !node.finish && !node.error;
  return isUnfinished ? { ...node, finish: 'left' } : node;
}

// Empty: the word is in the title alone.
function snippetOf(texts, word) {
  for (const text of texts) {
    const at = text.toLowerCase().indexOf(word);
    if (at < 0) continue;
    const begin = Math.max(0, at - 24);
    const part = text.slice(begin, at + word.length + 60).replace(/\s+/g, ' ').trim();
    return (begin > 0 ? '…' : '') + part;
  }
  return '';
}
