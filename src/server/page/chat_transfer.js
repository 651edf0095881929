// Chats go out as files, and come in.

import { jsonOf, markdownOf, missingFrom, readChat } from './chat_file.js';
import { openPanel } from './dialogs.js';
import { el } from './dom.js';

const WAYS = {
  json: { type: 'application/json', write: jsonOf },
  md: { type: 'text/markdown', write: markdownOf },
};

// dialog: with a button for each way, by its data-way, and a .loss.
export function listenToExport(opener, dialog, app) {
  opener.addEventListener('click', () => {
    const missing = missingFrom(shownChat(app));
    const loss = dialog.querySelector('.loss');
    loss.hidden = missing.length === 0;
    loss.textContent = `Missing: ${missing.join(', ')}, whose text the page did not keep.`;
    openPanel(dialog);
  });
  dialog.querySelector('.cancel').addEventListener('click', () => dialog.close());
  for (const button of dialog.querySelectorAll('[data-way]')) {
    button.addEventListener('click', () => {
      const { way } = button.dataset;
      const chat = shownChat(app);
      const text = WAYS[way].write(chat, app.properties?.model ?? 'Model');
      save(`${fileName(chat.title)}.${way}`, new Blob([text], { type: WAYS[way].type }));
      dialog.close();
    });
  }
}

// trouble: where it says what is wrong with a file.
export function listenToImport(opener, input, trouble, app) {
  opener.addEventListener('click', () => input.click());
  input.addEventListener('change', async () => {
    trouble.textContent = '';
    for (const file of [...input.files]) {
      try {
        app.add(await readChat(file));
      } catch (error) {
        trouble.textContent = error.message;
      }
    }
    input.value = '';
  });
}

function shownChat({ chat, system }) {
  return { title: chat.title || 'Chat', system, path: chat.tree.path() };
}

// What every system takes as the name of a file.
function fileName(title) {
  return title.replace(/[^\p{L}\p{N} ._-]+/gu, ' ').replace(/^[ .]+|[ .]+$/g, '').slice(0, 60) ||
    'chat';
}

function save(name, blob) {
  const url = URL.createObjectURL(blob);
  el('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
