// How long the rest of a prompt takes. Each token looks at those before it, so that the later ones
// take longer: the time for n tokens is taken to be a n + b n^2.

export class Foresight {
  #samples = [];  // {count, ms}, of which the counts grow

  note(count, ms) {
    if (count > 0 && ms > 0) this.#samples.push({ count, ms });
  }

  // From the last sample until so many tokens are read; 0: not known, or no time at all.
  msUntil(count) {
    const last = this.#samples.at(-1);
    if (!last || count <= last.count) return 0;
    const middle = this.#samples.find((sample) => sample.count >= last.count / 2);
    const rise = last.count - middle.count;
    const slower = rise > 0 ? (perToken(last) - perToken(middle)) / rise : 0;
    const b = Math.max(0, slower);
    const a = perToken(last) - b * last.count;
    return a * count + b * count ** 2 - last.ms;
  }
}

const perToken = ({ count, ms }) => ms / count;
