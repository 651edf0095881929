// What went wrong, in one sentence near where it happened, and what can be done.

import { el, textButton } from './dom.js';
import { tokens, whole } from './format.js';

const SENTENCES = {
  unreachable: () => 'The server cannot be reached: is it running?',
  busy: () => 'The server is busy with other requests.',
  key: () => 'The server requires an API key.',
  broken: ({ message }) => `The answer broke off: ${message}`,
  lost: ({ message }) => message,
  too_long: tooLong,
};

export function sentenceOf(error) {
  return asSentence(SENTENCES[error.kind]?.(error) ?? error.message);
}

// The server counts longer ones only so far.
function tooLong({ message, promptTokens: count, contextTokens: limit }) {
  const isMore = / more than /.test(message);
  const over = isMore ? 'over ' : '';
  return `This chat does not fit: it has ${over}${tokens(count)}, ${over}${whole(count - limit)} ` +
    `more than the ${whole(limit)} that the model can read at a time.`;
}

// The server's messages begin small and end without a stop.
function asSentence(text) {
  const sentence = text[0].toUpperCase() + text.slice(1);
  return /[.?!]$/.test(sentence) ? sentence : `${sentence}.`;
}

// choices: {label: action}. Those of an error with `retryAt` cannot be taken before. detail: a
// second sentence, for who wants to know more.
export function noticeOf(text, choices = {}, { retryAt = 0, isError = true, detail = '' } = {}) {
  const buttons = Object.entries(choices).map(([label, action]) => textButton(label, action));
  if (retryAt > Date.now()) buttons.forEach((button) => countDown(button, retryAt));
  const more = detail ? el('span', { className: 'detail' }, detail) : null;
  return el('div', { className: isError ? 'notice error' : 'notice' },
    el('p', {}, text, more), el('div', { className: 'notice-buttons' }, ...buttons));
}

function countDown(button, until) {
  const label = button.textContent;
  const tick = () => {
    const seconds = Math.ceil((until - Date.now()) / 1000);
    button.disabled = seconds > 0;
    button.textContent = seconds > 0 ? `${label} in ${seconds} s` : label;
    if (seconds > 0) setTimeout(tick, 250);
  };
  tick();
}
