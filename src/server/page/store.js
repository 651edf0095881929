// The browser's storage, or memory where that is full or blocked.

export const PREFIX = 'godwit.';

export class Store {
  #memory = new Map();
  #onTrouble;

  // onTrouble: called once, when the first thing could not be kept.
  constructor(onTrouble) {
    this.#onTrouble = onTrouble;
  }

  read(key) {
    if (this.#memory.has(key)) return this.#memory.get(key);
    try {
      const text = localStorage.getItem(PREFIX + key);
      return text === null ? null : JSON.parse(text);
    } catch {
      return null;
    }
  }

  write(key, value) {
    try {
      localStorage.setItem(PREFIX + key, JSON.stringify(value));
      this.#memory.delete(key);
    } catch {
      // A copy, as a later read would be; what is in storage is older from now on.
      this.#memory.set(key, JSON.parse(JSON.stringify(value)));
      this.#onTrouble?.();
      this.#onTrouble = null;
    }
  }

  remove(key) {
    this.#memory.delete(key);
    try {
      localStorage.removeItem(PREFIX + key);
    } catch {
      // Blocked: nothing is there.
    }
  }
}
