// What requests ask for beyond their messages. What is left empty is not sent: the server's own
// defaults hold then.

import { el } from './dom.js';
import { SAMPLING, WAYS } from './request.js';

const KEY = 'settings';
const UNSET = 'unset';  // of a picker; its choices have a prefix, "" may be one

export class Settings {
  values = {};
  #store;
  #form;

  constructor(form, store) {
    this.#form = form;
    this.#store = store;
    const kept = store.read(KEY);
    if (kept && typeof kept === 'object') this.values = kept;
    form.addEventListener('input', () => this.#take());
    form.addEventListener('submit', (event) => event.preventDefault());
  }

  // With what the server offers and what it does where nothing is asked for.
  show(properties) {
    const ways = WAYS.filter(({ name }) => properties?.[name]?.choices.length > 0);
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

  #picker({ name, label, hint, empty }, { default: usual, choices }) {
    const nameOf = (choice) => choice || empty;
    const select = el('select', { name, id: `set-${name}`, 'aria-describedby': `hint-${name}` },
      el('option', { value: UNSET }, `Default (${nameOf(usual)})`),
      ...choices.map((choice) => el('option', { value: `=${choice}` }, nameOf(choice))));
    select.value = choices.includes(this.values[name]) ? `=${this.values[name]}` : UNSET;
    return el('div', { className: 'field' }, el('label', { htmlFor: select.id }, label), select,
      el('p', { className: 'hint', id: `hint-${name}` }, hint));
  }

  #number({ name, label, ...limits }, usual) {
    const input = el('input', { type: 'number', name, id: `set-${name}`, inputMode: 'decimal',
      placeholder: usual === undefined ? 'default' : placeholderOf(name, usual) });
    for (const [limit, value] of Object.entries(limits)) input.setAttribute(limit, value);
    if (limits.step < 1) input.step = 'any';
    input.value = this.values[name] ?? '';
    return el('div', { className: 'field' }, el('label', { htmlFor: input.id }, label), input);
  }

  #take() {
    const values = {};
    for (const { name } of WAYS) {
      const choice = this.#form.elements[name]?.value;
      // Another server offered it: kept for that one.
      if (choice === undefined) values[name] = this.values[name];
      else if (choice !== UNSET) values[name] = choice.slice(1);
    }
    for (const { name } of SAMPLING) {
      const { value, valueAsNumber } = this.#form.elements[name];
      if (value !== '') values[name] = valueAsNumber;
    }
    const system = this.#form.elements.system.value;
    if (system.trim()) values.system = system;
    this.values = values;
    this.#store.write(KEY, values);
  }
}

function placeholderOf(name, usual) {
  if (name === 'max_tokens' && usual < 0) return 'default (no limit)';
  return `default (${usual})`;
}
