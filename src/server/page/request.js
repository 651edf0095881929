// A request, of a conversation and the settings.

import { contentOf, isLost } from './attachments.js';

export const SAMPLING = [
  { name: 'temperature', label: 'Temperature', step: 0.1, min: 0 },
  { name: 'top_p', label: 'Top p', step: 0.05, min: 0, max: 1 },
  { name: 'top_k', label: 'Top k', step: 1, min: 0 },
  { name: 'min_p', label: 'Min p', step: 0.01, min: 0, max: 1 },
  { name: 'repeat_penalty', label: 'Repeat penalty', step: 0.05, min: 0 },
  { name: 'max_tokens', label: 'Max tokens', step: 1, min: -1 },
  { name: 'seed', label: 'Seed', step: 1, min: 0 },
];

// empty: what the choice "" is called.
export const WAYS = [
  { name: 'kv', label: 'Attention', hint: 'What each token may see of those before it' },
  { name: 'prefill', label: 'Reading of the prompt', hint: 'All of it, or faster in part',
    empty: 'all of it' },
  { name: 'draft', label: 'Drafts', hint: 'Guesses that speed up writing', empty: 'none' },
];

// path: the messages, of which the last one is to be answered. Of the settings it has only what is
// set, and of the ways only those that the server offers: it refuses what it does not know.
export function requestOf(path, settings, properties) {
  const request = {
    messages: messagesOf(path, settings.system),
    stream: true,
    return_progress: true,
    stream_options: { include_usage: true },
  };
  for (const { name } of WAYS) {
    if (properties?.[name]?.choices.includes(settings[name])) request[name] = settings[name];
  }
  for (const { name } of SAMPLING) {
    if (typeof settings[name] === 'number') request[name] = settings[name];
  }
  return request;
}

function messagesOf(path, system) {
  const messages = system ? [{ role: 'system', content: system }] : [];
  for (const message of path) {
    // An answer that failed before its first word is none.
    if (message.role === 'assistant' && !message.content) continue;
    messages.push({
      role: message.role,
      content: contentOf(message),
      // Which the model's template takes or leaves.
      ...(message.thought && { reasoning_content: message.thought }),
    });
  }
  return messages;
}

// Of the files of these messages, the names of those that are no longer there.
export function lostFiles(path) {
  return path.flatMap((message) => message.attachments ?? []).filter(isLost)
    .map((file) => file.name);
}
