// Numbers as people read them.

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const TENTHS = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

export const whole = (number) => WHOLE.format(number);

export const tokens = (count) => `${whole(count)} ${count === 1 ? 'token' : 'tokens'}`;

export const rate = (perSecond) =>
  `${(perSecond < 100 ? TENTHS : WHOLE).format(perSecond)} tokens/s`;

export function percent(part, all) {
  const value = all > 0 ? (part / all) * 100 : 0;
  return value > 0 && value < 1 ? 'under 1 %' : `${whole(Math.floor(value))} %`;
}

export function bytes(count) {
  if (count < 1024) return `${count} B`;
  const unit = count < 1024 ** 2 ? 'KiB' : count < 1024 ** 3 ? 'MiB' : 'GiB';
  const size = { KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 }[unit];
  return `${TENTHS.format(count / size)} ${unit}`;
}

export function duration(ms) {
  if (ms < 995) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${TENTHS.format(seconds)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}
