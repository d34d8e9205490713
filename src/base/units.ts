/** Durations and sizes as people write them ("30s", "2GiB") and as programs count them (milliseconds, bytes). */

const durationUnitsMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const sizeUnitsBytes = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4 } as const;

export const durationHelp = 'write a number and a unit, such as "250ms", "30s", "5m", "2h" or "7d"';
export const sizeHelp = 'write a number and a unit, such as "512B", "64KiB", "100MiB" or "2GiB"';

/** Undefined if the text is not a duration. */
export const parseDurationMs = (text: string): number | undefined =>
  parse(text, /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/, durationUnitsMs);

/** Undefined if the text is not a size. */
export const parseSizeBytes = (text: string): number | undefined =>
  parse(text, /^(\d+(?:\.\d+)?)(B|KiB|MiB|GiB|TiB)$/, sizeUnitsBytes);

/** The coarsest unit that is precise enough: 850ms, 4.2s, 3m 5s, 2h 10m, 3d 4h. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  if (ms < 59_950) return `${trimZero((ms / 1_000).toFixed(1))}s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return pair(Math.floor(seconds / 60), "m", seconds % 60, "s");
  const minutes = Math.round(seconds / 60);
  if (minutes < 1_440) return pair(Math.floor(minutes / 60), "h", minutes % 60, "m");
  const hours = Math.round(minutes / 60);
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

export function formatSize(bytes: number): string {
  const unit = Object.entries(sizeUnitsBytes).findLast(([, size]) => bytes >= size) ?? ["B", 1];
  return `${trimZero((bytes / unit[1]).toFixed(1))}${unit[0]}`;
}

function parse(text: string, shape: RegExp, units: Readonly<Record<string, number>>): number | undefined {
  const match = shape.exec(text);
  if (!match) return undefined;
  const value = Math.round(Number(match[1]) * (units[match[2] ?? ""] ?? Number.NaN));
  return Number.isSafeInteger(value) ? value : undefined;
}

const trimZero = (text: string): string => text.replace(/\.0$/, "");

const pair = (big: number, bigUnit: string, small: number, smallUnit: string): string =>
  small === 0 ? `${big}${bigUnit}` : `${big}${bigUnit} ${small}${smallUnit}`;
