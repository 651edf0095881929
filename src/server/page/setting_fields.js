// What a request may ask for beyond its messages, with the values that the server takes.

export const SAMPLING = [
  { name: 'temperature', label: 'Temperature', step: 0.05, min: 0, max: 2,
    hint: '0: always the most likely token. Higher: more varied.' },
  { name: 'top_p', label: 'Top p', step: 0.05, min: 0, max: 1,
    hint: 'Choose among the most likely tokens that together have this probability. 1: all.' },
  { name: 'top_k', label: 'Top k', step: 1, min: 0, max: 100_000,
    hint: 'Choose among this number of most likely tokens. 0: all.' },
  { name: 'min_p', label: 'Min p', step: 0.01, min: 0, max: 1,
    hint: 'Drop tokens that are less likely than this fraction of the most likely one.' },
  { name: 'repeat_penalty', label: 'Repeat penalty', step: 0.05, min: 0.5, max: 2,
    hint: 'Above 1: tokens that occurred before become less likely.' },
  { name: 'max_tokens', label: 'Longest answer', step: 1, min: 1, max: 1_000_000,
    hint: 'In tokens of about four letters.' },
  { name: 'seed', label: 'Seed', step: 1, min: 0, max: Number.MAX_SAFE_INTEGER,
    hint: 'The same number gives the same answer. Empty: a new answer each time.' },
];

export const WAYS = [
  { name: 'kv', label: 'Attention', hint: 'The tokens that the model keeps and sees' },
  { name: 'prefill', label: 'Reading of the prompt', hint: 'Full attention, or a faster kind' },
  { name: 'draft', label: 'Drafts', hint: 'Draft tokens save time and never change the answer' },
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
    return { dense: 'everything',
      blocks: 'everything; answers see the blocks that score highest' }[choice];
  },
  prefill: (choice) => {
    const seen = /^window:(\d+)$/.exec(choice)?.[1];
    if (seen) return `each token sees the ${Number(seen).toLocaleString('en')} before it`;
    return choice === '' ? 'full attention' : undefined;
  },
  draft: (choice) => ({ '': 'none', ngram: 'from earlier text' })[choice],
};

// A choice of one of the ways in words, with the name that the server has for it.
export function wordsOf(way, choice) {
  const words = WORDS[way](choice);
  return words && choice ? `${words} (${choice})` : words ?? choice;
}
