/**
 * A pool of memory for large messages that are held briefly: a request until its handler returns, an answer until it is
 * sent. Such memory is outside the heap, and allocating much of it triggers full garbage collections again and again;
 * so it is reused.
 *
 * Memory that is taken and never returned is left to the garbage collector.
 */
const bytesMin = 64 * 1024;
const classesMax = 7; // up to 4 MiB
const freeBytesMax = 16 * 1024 * 1024;

const free: readonly ArrayBuffer[][] = Array.from({ length: classesMax }, () => []);
let freeBytes = 0;

/** The smallest class that is large enough; -1 if it is too small to be worth pooling, or too large. */
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

/** The caller must not use the memory after this. */
export function giveBody({ buffer, byteLength }: Buffer): void {
  const at = classFor(byteLength);
  if (at === -1 || !(buffer instanceof ArrayBuffer) || buffer.byteLength !== bytesMin << at) return;
  if (freeBytes + buffer.byteLength > freeBytesMax) return;
  freeBytes += buffer.byteLength;
  free[at]?.push(buffer);
}
