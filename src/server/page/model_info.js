// What the page can say of the model.

import { el } from './dom.js';
import { bytes, tokens, whole } from './format.js';
import { wordsOf } from './setting_fields.js';

const STEPS = [[1e9, ' billion'], [1e6, ' million'], [1e3, ' thousand']];

// list: a <dl>.
export function showModelInfo(list, properties) {
  list.replaceChildren(...factsOf(properties).flatMap(([name, text]) =>
    [el('dt', {}, name), el('dd', {}, text)]));
}

// [name, text]; what the server says nothing of is left out.
function factsOf(properties) {
  if (!properties) return [['State', 'unknown until the server answers']];
  const { model_info: info = {}, kv } = properties;
  const facts = [
    ['Name', properties.model],
    ['Family', info.family],
    ['Parameters', info.n_params && counted(info.n_params)],
    ['Stored as', info.stored_as?.join(', ')],
    ['In memory as', info.loaded_as && `${info.loaded_as}, ${bytes(info.size)}`],
    ['Context', contextOf(properties)],
    ['Tokens kept', kv && wordsOf('kv', kv.default)],
    ['Type of keys and values', info.kv_type],
    ['Vocabulary', info.n_vocab && tokens(info.n_vocab)],
    ['Server', properties.build_info],
  ];
  return facts.filter(([, text]) => text);
}

function contextOf({ n_ctx: limit, n_ctx_train: made }) {
  if (limit > 0 && made > 0 && limit !== made) {
    return `${tokens(limit)} (made for ${whole(made)})`;
  }
  if (limit > 0) return tokens(limit);
  return made > 0 ? `any number of tokens (made for ${whole(made)})` : '';
}

function counted(number) {
  const [size, word] = STEPS.find(([least]) => number >= least) ?? [1, ''];
  const rounded = number / size >= 100 ? Math.round(number / size)
    : Math.round((number / size) * 10) / 10;
  return `${whole(rounded) === String(rounded) ? rounded : rounded.toLocaleString('en')}${word}`;
}
