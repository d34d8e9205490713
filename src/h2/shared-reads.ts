/**
 * All sockets are read into one piece of memory, one after the other. Node would allocate 64 KiB for every read: memory
 * outside of V8's heap, to which V8 answers with collections of the whole heap, and which no cache of the processor
 * has seen before. Together that took as much CPU as reading, checking and hashing an upload.
 *
 * Node offers this to sockets that it connects (`onread`), and keeps it from those that a server accepted. What that
 * option sets is therefore set here: its properties are found by setting the option on a socket that is never used.
 * Where they are not found the socket is read as ever.
 */
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { assert } from "#base/assert.ts";

/** About what a socket holds, and what fits into a processor's cache beside everything else. */
const readBytes = 256 * 1024;

type Properties = Record<symbol, unknown>;
type Handle = { useUserBuffer?: (buffer: Buffer) => void };

let memory: Buffer | undefined;
let isRead = false;
let keys: { readonly buffer: symbol; readonly callback: symbol } | undefined;

/**
 * From now on `take` is called with all that comes. The bytes are lent: they are gone when it returns. Answers false,
 * with nothing changed, where that is not possible.
 */
export function readShared(socket: Duplex, take: (bytes: Buffer) => void): boolean {
  // TLS hands on what it has decrypted in the middle of other things, so its reads may not share.
  if (!(socket instanceof Socket) || socket instanceof TLSSocket) return false;
  const handle = (socket as unknown as { readonly _handle?: Handle | null })._handle;
  keys ??= findKeys();
  if (!keys || !handle?.useUserBuffer || !(keys.buffer in socket) || !(keys.callback in socket)) return false;
  memory ??= Buffer.allocUnsafeSlow(readBytes);
  const properties = socket as unknown as Properties;
  properties[keys.buffer] = memory;
  properties[keys.callback] = (length: number, bytes: Buffer): boolean => {
    assert(!isRead, "one read at a time");
    isRead = true;
    try {
      take(bytes.subarray(0, length));
    } finally {
      isRead = false;
    }
    return true;
  };
  handle.useUserBuffer(memory);
  return true;
}

function findKeys(): typeof keys {
  const buffer = Buffer.alloc(1);
  const callback = (): boolean => true;
  const probe = new Socket({ onread: { buffer, callback } });
  const own = Object.getOwnPropertySymbols(probe);
  const keyOf = (value: unknown): symbol | undefined =>
    own.find((key) => (probe as unknown as Properties)[key] === value);
  const [bufferKey, callbackKey] = [keyOf(buffer), keyOf(callback)];
  probe.destroy();
  return bufferKey && callbackKey && { buffer: bufferKey, callback: callbackKey };
}
