/**
 * ASCII text of up to 16 characters, or undefined if it is not ASCII. A call into the runtime costs a hundred
 * nanoseconds, and so does a loop, because it creates a string for every character; a call with a fixed number of
 * characters is inlined. Concatenating two halves would be stored as three strings.
 */
export const shortTextMax = 16;

const half = 8;

export function shortText(bytes: Uint8Array, start: number, length: number): string | undefined {
  for (let i = start; i < start + length; i += 1) if ((bytes[i] as number) >= 0x80) return undefined;
  return length <= half ? eight(bytes, start, length) : sixteen(bytes, start, length);
}

const { fromCharCode } = String;

function eight(bytes: Uint8Array, start: number, length: number): string {
  if (length === 0) return "";
  const a = bytes[start] as number;
  if (length === 1) return fromCharCode(a);
  const b = bytes[start + 1] as number;
  if (length === 2) return fromCharCode(a, b);
  const c = bytes[start + 2] as number;
  if (length === 3) return fromCharCode(a, b, c);
  const d = bytes[start + 3] as number;
  if (length === 4) return fromCharCode(a, b, c, d);
  const e = bytes[start + 4] as number;
  if (length === 5) return fromCharCode(a, b, c, d, e);
  const f = bytes[start + 5] as number;
  if (length === 6) return fromCharCode(a, b, c, d, e, f);
  const g = bytes[start + 6] as number;
  if (length === 7) return fromCharCode(a, b, c, d, e, f, g);
  const h = bytes[start + 7] as number;
  return fromCharCode(a, b, c, d, e, f, g, h);
}

/** From nine characters on. */
function sixteen(bytes: Uint8Array, start: number, length: number): string {
  const a = bytes[start] as number;
  const b = bytes[start + 1] as number;
  const c = bytes[start + 2] as number;
  const d = bytes[start + 3] as number;
  const e = bytes[start + 4] as number;
  const f = bytes[start + 5] as number;
  const g = bytes[start + 6] as number;
  const h = bytes[start + 7] as number;
  const i = bytes[start + 8] as number;
  if (length === 9) return fromCharCode(a, b, c, d, e, f, g, h, i);
  const j = bytes[start + 9] as number;
  if (length === 10) return fromCharCode(a, b, c, d, e, f, g, h, i, j);
  const k = bytes[start + 10] as number;
  if (length === 11) return fromCharCode(a, b, c, d, e, f, g, h, i, j, k);
  const l = bytes[start + 11] as number;
  if (length === 12) return fromCharCode(a, b, c, d, e, f, g, h, i, j, k, l);
  const m = bytes[start + 12] as number;
  if (length === 13) return fromCharCode(a, b, c, d, e, f, g, h, i, j, k, l, m);
  const n = bytes[start + 13] as number;
  if (length === 14) return fromCharCode(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  const o = bytes[start + 14] as number;
  if (length === 15) return fromCharCode(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  const p = bytes[start + 15] as number;
  return fromCharCode(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
}
