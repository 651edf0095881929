// The model that answers, where the server has several.

import { setModel } from './api.js';
import { el } from './dom.js';

const KEY = 'model';

export class ModelChoice {
  #select;
  #name;
  #store;

  // select: its menu. name: the heading that names the model. onChange(): another one is chosen.
  constructor(select, name, store, onChange) {
    this.#select = select;
    this.#name = name;
    this.#store = store;
    select.addEventListener('change', () => {
      this.#store.write(KEY, select.value);
      onChange();
    });
  }

  // '' where none was chosen: the server's first model then answers.
  get chosen() {
    const kept = this.#store.read(KEY);
    return typeof kept === 'string' ? kept : '';
  }

  // The model that is to answer; '' where there is one.
  get current() {
    return this.#select.hidden ? '' : this.#select.value;
  }

  // A menu of one model is none.
  show({ model, models = [] }) {
    const areSeveral = models.length > 1;
    this.#select.hidden = !areSeveral;
    this.#name.classList.toggle('visually-hidden', areSeveral);
    setModel(areSeveral ? model : '');
    if (!areSeveral) return;
    this.#select.replaceChildren(...models.map((name) => el('option', { value: name }, name)));
    this.#select.value = model;
  }
}
