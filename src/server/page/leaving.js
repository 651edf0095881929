// Whether the reader is about to leave the page: what breaks then is no failure.

// A browser that says so first may stay after all, and ends connections at once.
const SOON_MS = 3000;

let leftAt = -Infinity;

addEventListener('beforeunload', () => { leftAt = performance.now(); });
addEventListener('pagehide', () => { leftAt = Infinity; });
addEventListener('pageshow', () => { leftAt = -Infinity; });

export const isLeaving = () => performance.now() - leftAt < SOON_MS;
