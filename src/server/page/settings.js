// What requests ask for beyond their messages. What is left empty is not sent: the server's own
// defaults hold then. What is kept is always what the server takes.

import { el } from './dom.js';
import { isValid, nearestValid, SAMPLING, WAYS, wordsOf } from './setting_fields.js';

const KEY = 'settings';
const UNSET = 'unset';  // of a picker; its choices have a prefix, "" may be one

export class Settings {
  values = {};
  #store;
  #form;

  // onChange(): the values are others.
  constructor(form, store, onChange) {
    this.#form = form;
    this.#store = store;
    this.values = kept(store.read(KEY));
    form.addEventListener('input', () => {
      this.#take();
      onChange();
    });
    form.addEventListener('change', () => this.#correct());
    form.addEventListener('submit', (event) => event.preventDefault());
  }

  // With what the server offers and what it does where nothing is asked for. A menu of one choice
  // is none.
  show(properties) {
    const ways = WAYS.filter(({ name }) => properties?.[name]?.choices.length > 1);
    this.#form.querySelector('.ways').replaceChildren(
      ...ways.map((way) => this.#picker(way, properties[way.name])));
    this.#form.querySelector('.ways-title').hidden = ways.length === 0;
    const defaults = properties?.default_generation_settings ?? {};
    this.#form.querySelector('.sampling').replaceChildren(
      ...SAMPLING.map((field) => this.#number(field, defaults[field.name])));
    this.#form.elements.system.value = this.values.system ?? '';
  }

  reset(properties) {
    this.values = {};
    this.#store.write(KEY, this.values);
    this.show(properties);
  }

  #picker({ name, label, hint }, { default: usual, choices }) {
    const select = el('select', { name, id: `set-${name}`, 'aria-describedby': `hint-${name}` },
      el('option', { value: UNSET }, `Default: ${wordsOf(name, usual)}`),
      ...choices.map((choice) => el('option', { value: `=${choice}` }, wordsOf(name, choice))));
    select.value = choices.includes(this.values[name]) ? `=${this.values[name]}` : UNSET;
    return el('div', { className: 'field' }, el('label', { htmlFor: select.id }, label), select,
      el('p', { className: 'hint', id: `hint-${name}` }, hint));
  }

  #number({ name, label, step, min, max, hint }, usual) {
    const input = el('input', { type: 'number', name, id: `set-${name}`, min, max,
      inputMode: step < 1 ? 'decimal' : 'numeric', 'aria-describedby': `hint-${name}`,
      placeholder: placeholderOf(name, usual) });
    input.step = step < 1 ? 'any' : 1;
    input.value = this.values[name] ?? '';
    const range = max < 1e5 ? `${min} to ${max}. ` : '';
    return el('div', { className: 'field' }, el('label', { htmlFor: input.id }, label), input,
      el('p', { className: 'hint', id: `hint-${name}` }, range + hint));
  }

  #take() {
    const values = {};
    for (const { name } of WAYS) {
      const choice = this.#form.elements[name]?.value;
      // Another server offered it: kept for that one.
      if (choice === undefined) values[name] = this.values[name];
      else if (choice !== UNSET) values[name] = choice.slice(1);
    }
    for (const field of SAMPLING) {
      const value = nearestValid(field, this.#form.elements[field.name].valueAsNumber);
      if (value !== null) values[field.name] = value;
    }
    const system = this.#form.elements.system.value;
    if (system.trim()) values.system = system;
    this.values = values;
    this.#store.write(KEY, values);
  }

  // Where a number is out of its range, the field shows what is taken in its place.
  #correct() {
    for (const { name } of SAMPLING) {
      const input = this.#form.elements[name];
      const taken = this.values[name];
      if (input.value !== '' && input.valueAsNumber !== taken) input.value = taken ?? '';
    }
  }
}

// Of what the storage has, which may be of another version, or anything.
function kept(stored) {
  if (stored === null || typeof stored !== 'object') return {};
  const values = {};
  for (const name of ['system', ...WAYS.map((way) => way.name)]) {
    if (typeof stored[name] === 'string') values[name] = stored[name];
  }
  for (const field of SAMPLING) {
    if (isValid(field, stored[field.name])) values[field.name] = stored[field.name];
  }
  return values;
}

function placeholderOf(name, usual) {
  if (usual === undefined) return 'default';
  if (name === 'max_tokens' && usual < 0) return 'no limit';
  // As it was computed, in single precision, it has digits that nobody wrote.
  return `default: ${Number(usual.toPrecision(6))}`;
}
