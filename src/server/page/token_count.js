// How many tokens a text has, asked in pieces: a server that has other things to do is not held up
// by a long one, and the rest is not asked where nobody waits for it any more.

import { countTokens } from './api.js';

const PIECE = 256 * 1024;  // characters

// Another one is not counted: it fits nowhere.
const MOST_TOKENS = 4_000_000;

// {count, isMore (it has more than that)}; pieces end at lines, where tokens seldom go across.
export async function tokensOf(text, signal, ask = countTokens) {
  let count = 0;
  for (let at = 0; at < text.length && count <= MOST_TOKENS;) {
    const end = endOfPiece(text, at);
    count += await ask(text.slice(at, end), signal);
    at = end;
    if (count > MOST_TOKENS && at < text.length) return { count, isMore: true };
  }
  return { count, isMore: false };
}

function endOfPiece(text, begin) {
  const most = begin + PIECE;
  if (most >= text.length) return text.length;
  const line = text.lastIndexOf('\n', most - 1) + 1;
  if (line > begin) return line;
  // The two halves of a character stay together.
  return /[\uD800-\uDBFF]/.test(text[most - 1]) ? most - 1 : most;
}
