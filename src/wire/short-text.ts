/**
 * ASCII text of up to 16 characters, or undefined where it is not ASCII. A call into the runtime costs a hundred
 * nanoseconds, and so does a loop, because it makes a string for every character; a call with a fixed number of
 * characters is made in place.
 */
export const shortTextMax = 16;

const half = 8;

export function shortText(bytes: Uint8Array, start: number, length: number): string | undefined {
  for (let i = start; i < start + length; i += 1) if ((bytes[i] as number) >= 0x80) return undefined;
  if (length <= half) return eight(bytes, start, length);
  return eight(bytes, start, half) + eight(bytes, start + half, length - half);
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
  return fromCharCode(a, b, c, d, e, f, g, bytes[start + 7] as number);
}
