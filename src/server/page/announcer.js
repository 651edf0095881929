// What screen readers hear of what goes on: changes of state, not every token.

const LEAST_PAUSE_MS = 5000;

export class Announcer {
  #region;
  #lastProgress = -Infinity;

  constructor(region) {
    this.#region = region;
  }

  say(text) {
    this.#region.textContent = text;
  }

  // What comes often: most of it is left out.
  sayProgress(text) {
    const now = performance.now();
    if (now - this.#lastProgress < LEAST_PAUSE_MS) return;
    this.#lastProgress = now;
    this.say(text);
  }
}
