/** Which protocol a connection speaks, by its first bytes. */
import type { Socket } from "node:net";
import { looksLikeHttp2 } from "#h2/frames/preface.ts";

/** Calls back once it is known, with all that was read. How long that may take is for the connection's place to say. */
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
 * A whole line that does not end as every request line does is no HTTP/1.1, nor is it an HTTP/2 preface. Whoever meant
 * the latter could not read an answer in HTTP/1.1, and must see that the connection is closed (RFC 9113, 3.4). What has
 * no whole line yet is for the HTTP/1.1 server to wait for, and to refuse.
 */
export function looksLikeHttp1(first: Buffer): boolean {
  const end = first.indexOf("\n");
  return end === -1 || /(^\r?$)|( HTTP\/\d\.\d\r?$)/.test(first.toString("latin1", 0, end));
}
