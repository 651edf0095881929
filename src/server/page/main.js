// Puts the parts of the page together.

import { Announcer } from './announcer.js';
import { App } from './app.js';
import { listenToExport, listenToImport } from './chat_transfer.js';
import { Composer } from './composer.js';
import { ContextBar } from './context_bar.js';
import { openPanel } from './dialogs.js';
import { ModelChoice } from './model_choice.js';
import { showModelInfo } from './model_info.js';
import { noticeOf } from './notice.js';
import { Settings } from './settings.js';
import { Sidebar } from './sidebar.js';
import { Store } from './store.js';
import { Thread } from './thread.js';

const at = (id) => document.getElementById(id);

const app = new App();

const store = new Store(() => {
  const close = () => at('store-notice').replaceChildren();
  at('store-notice').replaceChildren(noticeOf('This browser keeps nothing for this page, because ' +
    'its storage is full or blocked: chats are lost when the page is left.',
  { Understood: close }, { isError: false }));
});

const composer = new Composer({
  id: 'input',
  label: 'Message',
  placeholder: 'Write a message',
  onSend: (message) => app.send(message),
  onStop: () => app.stop(),
  room: () => (app.chat ? app.actions.roomBefore() : { used: 0, limit: 0 }),
  request: (message) => app.requestWith(message),
});

const contextBar = new ContextBar(app.actions);
at('bottom').append(composer.element, contextBar.element);

app.connectParts({
  store,
  composer,
  contextBar,
  settings: new Settings(at('settings-form'), store, () => app.showSettings()),
  thread: new Thread({ scroller: at('scroller'), list: at('messages'), toEnd: at('to-end') },
    app.actions),
  sidebar: new Sidebar({
    sidebar: at('sidebar'), list: at('chats'), opener: at('open-sidebar'),
    closer: at('close-sidebar'), shade: at('shade'), rest: at('rest'), search: at('search'),
    none: at('none-found'),
  }, app.list),
  announcer: new Announcer(at('announcer')),
  banner: at('banner'),
  welcome: at('welcome'),
  modelName: at('model'),
  modelChoice: new ModelChoice(at('model-choice'), at('model'), store, () => app.connect()),
  systemMessage: at('system-message'),
  exportButton: at('open-export'),
});

function listenToButtons() {
  const { settings, sidebar } = app.parts;
  at('new-chat').addEventListener('click', () => {
    sidebar.toggle(false, false);
    app.startNew();
  });
  at('open-settings').addEventListener('click', () => openPanel(at('settings')));
  at('close-settings').addEventListener('click', () => at('settings').close());
  at('reset-settings').addEventListener('click', () => {
    settings.reset(app.properties);
    app.showSettings();
  });
  at('open-info').addEventListener('click', () => {
    showModelInfo(at('model-facts'), app.properties);
    openPanel(at('info-dialog'));
  });
  at('close-info').addEventListener('click', () => at('info-dialog').close());
  listenToExport(at('open-export'), at('export-dialog'), app);
  listenToImport(at('import'), at('import-file'), at('import-trouble'), app);
  at('skip').addEventListener('click', (event) => {
    event.preventDefault();
    composer.focus();
  });
}

function listenToKeys() {
  addEventListener('keydown', (event) => {
    if (document.querySelector('dialog[open]') || event.isComposing) return;
    const isInField = event.target.matches?.('input, textarea, select');
    if (event.key === 'Escape') {
      app.stop();
    } else if (event.key.toLowerCase() === 'o' && event.ctrlKey && event.shiftKey) {
      event.preventDefault();
      app.startNew();
    } else if (event.key === '/' && !isInField && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      composer.focus();
    }
  });
}

function listenToDrops() {
  const hasFiles = (event) => event.dataTransfer?.types.includes('Files');
  addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    document.body.classList.add('dropping');
  });
  addEventListener('dragleave', (event) => {
    if (!event.relatedTarget) document.body.classList.remove('dropping');
  });
  addEventListener('drop', (event) => {
    document.body.classList.remove('dropping');
    if (!hasFiles(event)) return;
    event.preventDefault();
    composer.attach([...event.dataTransfer.files]);
  });
}

listenToButtons();
listenToKeys();
listenToDrops();
addEventListener('storage', ({ key }) => app.noteChange(key));
addEventListener('pagehide', () => app.leave());
addEventListener('popstate', () => app.open(location.hash.slice(1)));
app.parts.settings.show(null);
app.open(location.hash.slice(1));
app.connect();
// On a touch screen this would open the keyboard over the page.
if (matchMedia('(hover: hover)').matches) composer.focus();
