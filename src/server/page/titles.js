// What a chat is called before somebody names it.

const LONGEST = 60;

export function titleOf(text) {
  const line = text.trim().split('\n')[0];
  return line.length > LONGEST ? `${line.slice(0, LONGEST - 1)}…` : line;
}
