/** Which protocol a connection speaks, by its first bytes. */
import type { Socket } from "node:net";
import type { Clock } from "#base/clock.ts";

/** How every HTTP/2 connection begins; no request of HTTP/1.1 does. */
const h2Preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

export function protocolOf(firstBytes: Buffer): "h2" | "http/1.1" | "unknown yet" {
  const length = Math.min(firstBytes.length, h2Preface.length);
  if (firstBytes.compare(h2Preface, 0, length, 0, length) !== 0) return "http/1.1";
  return length === h2Preface.length ? "h2" : "unknown yet";
}

/** Calls back once it is known, with all that was read; a connection that says too little for too long is closed. */
export function sniff(
  socket: Socket,
  clock: Clock,
  limitMs: number,
  found: (kind: "h2" | "http/1.1", firstBytes: Buffer) => void,
): void {
  let read: Buffer = Buffer.alloc(0);
  const cancel = clock.after(limitMs, () => socket.destroy());
  const stop = (): void => {
    cancel();
    socket.off("data", look);
    socket.off("end", ended);
    socket.off("close", stop);
  };
  const ended = (): void => void socket.destroy();
  const look = (chunk: Buffer): void => {
    read = read.length === 0 ? chunk : Buffer.concat([read, chunk]);
    const kind = protocolOf(read);
    if (kind === "unknown yet") return;
    stop();
    socket.pause();
    found(kind, read);
  };
  socket.on("data", look);
  socket.on("end", ended);
  socket.on("close", stop);
}
