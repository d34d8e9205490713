/** Detects a connection's protocol by its first bytes. */
import type { Socket } from "node:net";
import { looksLikeHttp2 } from "#h2/frames/preface.ts";

/** Calls back once the protocol is known, with everything read so far. The connection's slot limits the time. */
export function sniff(socket: Socket, found: (kind: "h2" | "http/1.1" | "neither", firstBytes: Buffer) => void): void {
  let read: Buffer = Buffer.alloc(0);
  const stop = (): void => {
    socket.off("data", look);
    socket.off("end", ended);
    socket.off("close", stop);
  };
  const ended = (): void => void socket.destroy();
  const look = (chunk: Buffer): void => {
    read = read.length === 0 ? chunk : Buffer.concat([read, chunk]);
    const isHttp2 = looksLikeHttp2(read);
    if (isHttp2 === "more") return;
    stop();
    socket.pause();
    found(isHttp2 === "yes" ? "h2" : looksLikeHttp1(read) ? "http/1.1" : "neither", read);
  };
  socket.on("data", look);
  socket.on("end", ended);
  socket.on("close", stop);
}

/**
 * A complete line that does not end like a request line is neither HTTP/1.1 nor an HTTP/2 preface. A client that meant
 * the latter could not read an answer in HTTP/1.1, so the connection is closed (RFC 9113, 3.4). For an incomplete line
 * the HTTP/1.1 server waits, and refuses it.
 */
export function looksLikeHttp1(first: Buffer): boolean {
  const end = first.indexOf("\n");
  return end === -1 || /(^\r?$)|( HTTP\/\d\.\d\r?$)/.test(first.toString("latin1", 0, end));
}
