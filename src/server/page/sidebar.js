// The list of conversations; on small screens a drawer.

import { el, iconButton } from './dom.js';

const SEARCH_AFTER_MS = 150;
const SMALL = matchMedia('(max-width: 800px)');

export class Sidebar {
  #parts;
  #actions;
  #renamed = null;  // the id of the one whose name is being written

  // parts: {sidebar, list, opener, closer, shade, rest, search, none}; actions: {rename, remove,
  // search}.
  constructor(parts, actions) {
    this.#parts = parts;
    this.#actions = actions;
    parts.opener.addEventListener('click', () => this.toggle(true));
    parts.closer.addEventListener('click', () => this.toggle(false));
    parts.shade.addEventListener('click', () => this.toggle(false));
    parts.sidebar.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || !this.#isOpen) return;
      event.stopPropagation();
      this.toggle(false);
    });
    this.#listenToSearch(parts.search);
    SMALL.addEventListener('change', () => this.toggle(false, false));
  }

  #listenToSearch(search) {
    let timer = 0;
    search.addEventListener('input', () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.#actions.search(search.value), SEARCH_AFTER_MS);
    });
    search.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || !search.value) return;
      event.stopPropagation();
      search.value = '';
      this.#actions.search('');
    });
  }

  get #isOpen() {
    return this.#parts.sidebar.classList.contains('open');
  }

  toggle(isOpen, movesFocus = true) {
    const { sidebar, shade, rest, opener, closer } = this.#parts;
    if (isOpen === this.#isOpen) return;
    sidebar.classList.toggle('open', isOpen);
    shade.hidden = !isOpen;
    rest.inert = isOpen;
    opener.setAttribute('aria-expanded', isOpen);
    if (movesFocus) (isOpen ? closer : opener).focus();
  }

  // chats: {id, title, snippet (of what was searched for)}; current: an id; busy: ids of those that
  // are being answered.
  show(chats, current, busy) {
    if (this.#renamed) return;  // it is shown anew when the name is written
    this.#parts.none.hidden = chats.length > 0 || !this.#parts.search.value.trim();
    this.#parts.list.replaceChildren(...chats.map((chat) =>
      this.#item(chat, chat.id === current, busy.has(chat.id))));
  }

  #item(chat, isCurrent, isBusy) {
    const item = el('li', { className: isCurrent ? 'chat current' : 'chat' });
    const link = el('a', { href: `#${chat.id}`, title: chat.title }, chat.title || 'Untitled');
    if (isCurrent) link.setAttribute('aria-current', 'page');
    if (chat.snippet) link.append(el('span', { className: 'snippet' }, chat.snippet));
    if (isBusy) link.append(el('span', { className: 'busy', title: 'Being answered' }));
    link.addEventListener('click', () => this.toggle(false, false));
    const edit = iconButton('edit', `Rename ${chat.title}`, () => {
      this.#renamed = chat.id;
      item.replaceChildren(this.#nameField(chat));
      item.firstChild.select();  // and has the focus
    }, 'icon-button small');
    const remove = iconButton('delete', `Delete ${chat.title}`, () => this.#actions.remove(chat),
      'icon-button small');
    item.append(link, edit, remove);
    return item;
  }

  #nameField(chat) {
    const field = el('input',
      { value: chat.title, 'aria-label': 'Name of the chat', maxLength: 120 });
    const end = (isKept) => {
      if (this.#renamed !== chat.id) return;
      this.#renamed = null;
      this.#actions.rename(chat, isKept ? field.value.trim() || chat.title : chat.title);
    };
    field.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && !event.isComposing) end(true);
      if (event.key === 'Escape') {
        event.stopPropagation();
        end(false);
      }
    });
    field.addEventListener('blur', () => end(true));
    return field;
  }
}
