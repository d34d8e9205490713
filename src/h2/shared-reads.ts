/**
 * All sockets are read into one piece of memory, one after the other. Node would allocate 64 KiB for every read: memory
 * outside V8's heap, which makes V8 collect the whole heap often, and which is not in the processor's cache. Together
 * that took as much CPU as reading, checking and hashing an upload.
 *
 * Node offers this for sockets that it connects (`onread`), but not for those that a server accepted. So what that
 * option sets is set here: its properties are found by setting the option on a socket that is never used. If they are
 * not found, the socket is read as usual.
 */
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { assert } from "#base/assert.ts";

/** Roughly what a socket holds, and what fits into a processor's cache beside everything else. */
const readBytes = 256 * 1024;

type Properties = Record<symbol, unknown>;
type Handle = { useUserBuffer?: (buffer: Buffer) => void };

let memory: Buffer | undefined;
let isRead = false;
let keys: { readonly buffer: symbol; readonly callback: symbol } | undefined;

/**
 * From now on `take` is called with everything that arrives. The bytes are borrowed: they are overwritten after it
 * returns. Returns false, with nothing changed, if that is not possible.
 */
export function readShared(socket: Duplex, take: (bytes: Buffer) => void): boolean {
  // TLS delivers decrypted data in the middle of other work, so its reads cannot share the memory.
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
