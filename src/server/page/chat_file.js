// A chat as a file: {"messages": [{"role": "user", "content": "..."}, ...]}, as chat APIs have them
// and as `godwit chat` saves and loads it, or Markdown to be read. It is the branch that is shown.

import { contentOf, isLost, takeFiles } from './attachments.js';
import { titleOf } from './titles.js';

const MOST_BYTES = 64 * 1024 ** 2;
const MOST_MESSAGES = 10_000;
const LONGEST_TITLE = 120;
const ROLES = { user: 'user', assistant: 'assistant' };
const KEYS = new Set(['role', 'content', 'reasoning_content']);

// Answers that failed before their first word are none. chat: {title, path, system}.
function said({ path }) {
  return path.filter(({ role, content }) => role === 'user' || content);
}

// Thoughts stand beside the messages: programs that take messages may not know of them.
export function jsonOf(chat, model) {
  const messages = chat.system ? [{ role: 'system', content: chat.system }] : [];
  const thoughts = {};
  for (const message of said(chat)) {
    if (message.thought) thoughts[messages.length] = message.thought;
    messages.push({ role: message.role, content: contentOf(message) });
  }
  const file = { title: chat.title, model, messages };
  if (Object.keys(thoughts).length > 0) file.thoughts = thoughts;
  return `${JSON.stringify(file, null, 2)}\n`;
}

export function markdownOf(chat, model) {
  const parts = [`# ${chat.title}`];
  if (chat.system) parts.push('## System message', chat.system);
  for (const { role, content, attachments = [] } of said(chat)) {
    parts.push(role === 'user' ? '## You' : `## ${model}`);
    for (const { name, text = '' } of attachments) parts.push(`${name}:`, fenced(text));
    if (content) parts.push(content.trim());
  }
  return `${parts.join('\n\n')}\n`;
}

// Files whose texts are gone are not in it.
export function missingFrom({ path }) {
  return path.flatMap(({ attachments = [] }) => attachments.filter(isLost))
    .map(({ name }) => name);
}

function fenced(text) {
  const longest = Math.max(2, ...(text.match(/`{3,}/g) ?? []).map((ticks) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}`;
}

export async function readChat(file) {
  if (file.size > MOST_BYTES) throw new Error(`${file.name} is larger than 64 MiB.`);
  let text;
  try {
    text = await file.text();
  } catch {
    throw new Error(`${file.name} cannot be read.`);
  }
  try {
    return parseChat(text, file.name);
  } catch (error) {
    throw new Error(`${file.name} is not a chat: ${error.message}`);
  }
}

// {title, system, messages}; an Error says what is wrong. Nothing of it is left out in silence.
export function parseChat(text, name = '') {
  const root = parse(text);
  const list = Array.isArray(root) ? root : root?.messages;
  if (!Array.isArray(list)) throw new Error('expected an object with a list of "messages".');
  if (list.length > MOST_MESSAGES) {
    throw new Error(`it has more than ${MOST_MESSAGES.toLocaleString('en')} messages.`);
  }
  let system;
  const messages = [];
  list.forEach((entry, index) => {
    const where = `message ${index + 1}`;
    const { role, content, thought } = messageOf(entry, where);
    if (index === 0 && (role === 'system' || role === 'developer')) system = content;
    else messages.push(shown(roleOf(role, where), content, thought ?? thoughtOf(root, index)));
  });
  if (messages.length === 0) throw new Error('it has no messages.');
  return { title: titleIn(root) || titleOf(firstWords(messages[0])) || name, system, messages };
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('it is not JSON.');
  }
}

function messageOf(entry, where) {
  if (entry === null || typeof entry !== 'object' || Array.isArray(entry)) {
    throw new Error(`${where} is not an object.`);
  }
  const other = Object.keys(entry).find((key) => !KEYS.has(key) && entry[key] !== null);
  if (other !== undefined) {
    throw new Error(`${where} has the field ${quoted(other)}, which this page does not support.`);
  }
  const { role, reasoning_content: thought } = entry;
  if (typeof role !== 'string') throw new Error(`${where} has no "role".`);
  if (thought !== undefined && thought !== null && typeof thought !== 'string') {
    throw new Error(`${where}: "reasoning_content" must be text.`);
  }
  return { role, content: textOf(entry.content, where), thought: thought ?? undefined };
}

// A text, or a list of parts that are texts.
function textOf(content, where) {
  if (typeof content === 'string') return content;
  const isText = (part) => part?.type === 'text' && typeof part.text === 'string';
  if (Array.isArray(content) && content.every(isText)) {
    return content.map((part) => part.text).join('\n');
  }
  throw new Error(`${where} has other content than text.`);
}

function roleOf(role, where) {
  if (Object.hasOwn(ROLES, role)) return ROLES[role];
  throw new Error(`${where} has the role ${quoted(role)}, expected "user" or "assistant".`);
}

const quoted = (text) => JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);

function thoughtOf(root, index) {
  const thought = root.thoughts?.[index];
  return typeof thought === 'string' ? thought : undefined;
}

// As the page has messages.
function shown(role, content, thought) {
  if (role === 'user') return { role, ...takeFiles(content) };
  return { role, content, ...(thought && { thought }), finish: 'stop' };
}

const firstWords = ({ content, attachments }) => content || attachments?.[0].name || '';

function titleIn(root) {
  return typeof root.title === 'string' ? root.title.trim().slice(0, LONGEST_TITLE) : '';
}
