// Text files that go before the text of a message.

const MOST_BYTES = 48 * 1024 ** 2;  // a request has 64 MiB, and JSON makes some texts longer
const MOST_KEPT = 256 * 1024;

// {name, size, text}, or an Error whose message says what is wrong with the file.
export async function readFile(file) {
  if (file.size > MOST_BYTES) throw new Error(`${file.name} is larger than 48 MiB.`);
  let text;
  try {
    text = await file.text();
  } catch {
    throw new Error(`${file.name} cannot be read.`);
  }
  if (text.includes('\0')) throw new Error(`${file.name} is not a text file.`);
  return { name: file.name, size: file.size, text };
}

export const isLost = (attachment) => attachment.text === undefined;

export function contentOf(message) {
  const files = (message.attachments ?? []).filter((file) => !isLost(file)).map((file) => {
    const name = file.name.replace(/["\r\n]/g, "'");
    return `<file name="${name}">\n${file.text}${file.text.endsWith('\n') ? '' : '\n'}</file>\n`;
  });
  return files.join('\n') + (files.length > 0 ? '\n' : '') + message.content;
}

// What contentOf made one text of: {content, attachments}, as far as it would make the same of it.
export function takeFiles(text) {
  const attachments = [];
  let rest = text;
  for (let file; (file = /^\n?<file name="([^"\n]*)">\n/.exec(rest));) {
    const end = rest.indexOf('</file>\n', file[0].length);
    if (end < 0) break;
    const inner = rest.slice(file[0].length, end);
    attachments.push({ name: file[1], size: new Blob([inner]).size, text: inner });
    rest = rest.slice(end + '</file>\n'.length);
  }
  const message = { content: rest.replace(/^\n/, ''), attachments };
  return attachments.length > 0 && contentOf(message) === text ? message : { content: text };
}

const withoutText = ({ text, ...file }) => file;

// A message as it is kept: the browser's storage is too small for large files.
export function withoutLarge(message) {
  if (!message.attachments) return message;
  const attachments = message.attachments.map((file) =>
    isLost(file) || file.text.length <= MOST_KEPT ? file : withoutText(file));
  return { ...message, attachments };
}
