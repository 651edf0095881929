// A request, of a conversation and the settings.

import { contentOf, isLost } from './attachments.js';
import { isValid, SAMPLING, WAYS } from './setting_fields.js';

// path: the messages, of which the last one is to be answered. Of the settings it has only what is
// set and in its range, and of the ways only those that the server offers: it refuses all else.
// model: the one of several that is to answer, if the server has several.
export function requestOf(path, settings, properties, model) {
  const request = {
    messages: messagesOf(path, settings.system),
    stream: true,
    return_progress: true,
    stream_options: { include_usage: true },
  };
  if (model) request.model = model;
  for (const { name } of WAYS) {
    if (properties?.[name]?.choices.includes(settings[name])) request[name] = settings[name];
  }
  for (const field of SAMPLING) {
    if (isValid(field, settings[field.name])) request[field.name] = settings[field.name];
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
