// What a request may ask for beyond its messages, with the values that the server takes.

export const SAMPLING = [
  { name: 'temperature', label: 'Temperature', step: 0.05, min: 0, max: 2,
    hint: '0: always the likeliest word. More: more varied.' },
  { name: 'top_p', label: 'Top p', step: 0.05, min: 0, max: 1,
    hint: 'The likeliest words that make up this share. 1: all.' },
  { name: 'top_k', label: 'Top k', step: 1, min: 0, max: 100_000,
    hint: 'So many of the likeliest words. 0: all.' },
  { name: 'min_p', label: 'Min p', step: 0.01, min: 0, max: 1,
    hint: 'Words at least so likely as this part of the likeliest.' },
  { name: 'repeat_penalty', label: 'Repeat penalty', step: 0.05, min: 0.5, max: 2,
    hint: 'Above 1: words that were said already become less likely.' },
  { name: 'max_tokens', label: 'Longest answer', step: 1, min: 1, max: 1_000_000,
    hint: 'In tokens, of about four letters each.' },
  { name: 'seed', label: 'Seed', step: 1, min: 0, max: Number.MAX_SAFE_INTEGER,
    hint: 'The same number, the same answer. Empty: another one each time.' },
];

export const WAYS = [
  { name: 'kv', label: 'Attention', hint: 'What the model keeps of a text that it has read' },
  { name: 'prefill', label: 'Reading of the prompt', hint: 'All of it, or faster in part' },
  { name: 'draft', label: 'Drafts', hint: 'Guesses make writing faster and change no answer' },
];

export function isValid({ step, min, max }, value) {
  return typeof value === 'number' && value >= min && value <= max &&
    (step < 1 || Number.isSafeInteger(value));
}

// The valid value that is nearest; null for what is no number.
export function nearestValid({ step, min, max }, value) {
  if (typeof value !== 'number' || Number.isNaN(value)) return null;
  const whole = step < 1 ? value : Math.round(value);
  return Math.min(Math.max(whole, min), max);
}

const WORDS = {
  kv: (choice) => {
    const last = /^sinks:\d+\+(\d+)$/.exec(choice)?.[1];
    if (last) return `the beginning and the last ${Number(last).toLocaleString('en')} tokens`;
    return { dense: 'everything', blocks: 'everything, of which it looks at what matters' }[choice];
  },
  prefill: (choice) => {
    const seen = /^window:(\d+)$/.exec(choice)?.[1];
    if (seen) return `each word with the ${Number(seen).toLocaleString('en')} tokens before it`;
    return choice === '' ? 'all of it' : undefined;
  },
  draft: (choice) => ({ '': 'none', ngram: 'from what was said before' })[choice],
};

// A choice of one of the ways in words, with the name that the server has for it.
export function wordsOf(way, choice) {
  const words = WORDS[way](choice);
  return words && choice ? `${words} (${choice})` : words ?? choice;
}
