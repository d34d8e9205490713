/** A blob's name: `<function>:<hex>/<size>`; the function may be left out for SHA-256, the default. */
export type Digest = string;

const shape = /^(?:(sha256|blake3):)?([0-9a-f]{64})\/(0|[1-9][0-9]{0,15})$/;

export const isDigest = (text: string): boolean => shape.test(text);

export function digestSizeBytes(digest: Digest): number {
  const match = shape.exec(digest);
  return match ? Number(match[3]) : Number.NaN;
}
