/**
 * Memory for large messages that are held briefly: a request whose handler is done with it when it returns, an answer
 * until it is sent. Such memory comes from outside the heap, and much of it makes the collector look through all that
 * is in the heap, over and over; so it is used again.
 *
 * What is taken and never given back is the collector's, as ever.
 */
const bytesMin = 64 * 1024;
const classesMax = 7; // up to 4 MiB
const freeBytesMax = 16 * 1024 * 1024;

const free: readonly ArrayBuffer[][] = Array.from({ length: classesMax }, () => []);
let freeBytes = 0;

/** The smallest that is large enough; -1 for what is not worth it, or too much. */
function classFor(length: number): number {
  if (length < bytesMin) return -1;
  const at = Math.ceil(Math.log2(length / bytesMin));
  return at < classesMax ? at : -1;
}

export function takeBody(length: number): Buffer {
  const at = classFor(length);
  if (at === -1) return Buffer.allocUnsafe(length);
  const memory = free[at]?.pop();
  if (!memory) return Buffer.allocUnsafeSlow(bytesMin << at).subarray(0, length);
  freeBytes -= memory.byteLength;
  return Buffer.from(memory, 0, length);
}

/** Whoever took it must not look at it any more. */
export function giveBody({ buffer, byteLength }: Buffer): void {
  const at = classFor(byteLength);
  if (at === -1 || !(buffer instanceof ArrayBuffer) || buffer.byteLength !== bytesMin << at) return;
  if (freeBytes + buffer.byteLength > freeBytesMax) return;
  freeBytes += buffer.byteLength;
  free[at]?.push(buffer);
}
