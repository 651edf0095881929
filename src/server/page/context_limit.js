// How much the model can read at a time, and the way out where a chat has more than that.

const forgets = (kv) => kv.startsWith('sinks:');

// In tokens; 0: there is no limit, or none that is known. kv: what requests ask for, if anything.
export function limitOf(properties, kv) {
  const asked = properties?.kv?.choices.includes(kv) ? kv : properties?.kv?.default ?? '';
  if (forgets(asked)) return 0;
  return properties?.n_ctx || properties?.n_ctx_train || 0;
}

// Of the attentions that the server offers one that keeps the beginning and the end of a text, and
// so reads texts of any length; undefined: there is none.
export function forgettingChoice(properties) {
  return properties?.kv?.choices.find(forgets);
}
