/**
 * Runs one HTTP/2 connection on one socket, plain or TLS. Bytes go from the socket to the machine and back, one batch
 * at a time: while a batch is being written, new output collects for the next one.
 */
import type { Duplex } from "node:stream";
import type { Clock } from "#base/clock.ts";
import { Connection } from "./connection/connection.ts";
import type { ClosedWhy, ConnectionHandler } from "./connection/connection-handler.ts";
import { errorCode, type ErrorCode } from "./frames/error-codes.ts";
import type { OutgoingHeaders } from "./hpack/hpack-encoder.ts";
import type { H2Limits } from "./connection/limits.ts";
import type { Batch } from "./connection/output.ts";
import { readShared } from "./shared-reads.ts";
import type { Stream, StreamHandler } from "./connection/stream.ts";

export type H2SocketOptions = {
  readonly role: "server" | "client";
  readonly clock: Clock;
  readonly handler: ConnectionHandler;
  readonly limits?: Partial<H2Limits>;
  /** Server: takes CONNECT with a :protocol (RFC 8441). */
  readonly takesProtocols?: boolean;
  /** What was already read from the socket, such as the first bytes, which identified the protocol. */
  readonly firstBytes?: Uint8Array;
};

const tickMs = 1_000;
/** After our last frame the peer has this long to close the connection. */
const lingerMs = 1_000;

export class H2Socket {
  readonly connection: Connection;
  readonly #socket: Duplex;
  readonly #clock: Clock;
  readonly #closed = Promise.withResolvers<ClosedWhy>();
  #writing: Batch | undefined;
  #flushDue = false;
  #paused = false;
  #ending = false;
  #stopTicking: () => void = () => {};

  /** Takes the socket over: no other code may read from it or write to it. */
  constructor(socket: Duplex, { role, clock, handler, limits, takesProtocols, firstBytes }: H2SocketOptions) {
    this.#socket = socket;
    this.#clock = clock;
    this.connection = new Connection({
      role,
      nowMs: clock.monotonicMs(),
      ...(limits === undefined ? {} : { limits }),
      ...(takesProtocols === undefined ? {} : { takesProtocols }),
      handler: {
        ...handler,
        onOutput: () => this.#flushSoon(),
        onClosed: (why) => {
          handler.onClosed?.(why);
          this.#closed.resolve(why);
          this.#flushSoon();
        },
      },
    });
    if ("setNoDelay" in socket && typeof socket.setNoDelay === "function") socket.setNoDelay(true);
    const inside = takeReadable(socket);
    if (!readShared(socket, (bytes) => this.#read(bytes))) socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", (error) => this.#gone(error.message));
    socket.on("end", () => this.#gone("the peer closed the connection"));
    socket.on("close", () => this.#gone("the connection was closed"));
    this.#tickLater();
    for (const bytes of [firstBytes, inside]) if (bytes && bytes.length > 0) this.#read(bytes);
    this.#flush();
    if (!this.#paused) socket.resume(); // the code that read the first bytes may have paused it
  }

  /** Resolves when the connection is over, however it ended. */
  get closed(): Promise<ClosedWhy> {
    return this.#closed.promise;
  }

  /** Client: opens a stream. Throws "unavailable" when the connection is going away. */
  request(headers: OutgoingHeaders, handler: StreamHandler, end = false): Stream {
    return this.connection.request(headers, handler, end);
  }

  /** Lets the open streams end, accepts no new ones, then closes. */
  async drain(): Promise<void> {
    this.connection.drain();
    await this.closed;
  }

  close(code: ErrorCode = errorCode.noError, why = "closed"): void {
    this.connection.close(code, why);
  }

  #read(chunk: Uint8Array): void {
    this.connection.receive(chunk, this.#clock.monotonicMs());
    this.#flush();
    if (this.connection.wantsReadPause && !this.#paused && !this.connection.closed) {
      this.#paused = true;
      this.#socket.pause();
    }
  }

  /** For output outside of a read: replies that are made together are sent together. */
  #flushSoon(): void {
    if (this.#flushDue) return;
    this.#flushDue = true;
    setImmediate(() => {
      this.#flushDue = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#writing !== undefined) return;
    const batch = this.connection.takeOutput();
    if (batch === undefined) return this.#endIfClosed();
    this.#writing = batch;
    const socket = this.#socket;
    const { chunks } = batch;
    const last = chunks.length - 1;
    if (last < 0 || !socket.writable) return this.#written();
    if (last > 0) socket.cork();
    for (let i = 0; i < last; i += 1) socket.write(chunks[i]);
    socket.write(chunks[last], this.#written);
    if (last > 0) socket.uncork();
  }

  readonly #written = (): void => {
    const batch = this.#writing;
    if (batch === undefined) return;
    this.#writing = undefined;
    this.connection.outputDone(batch, this.#clock.monotonicMs());
    if (this.#paused && !this.connection.wantsReadPause) {
      this.#paused = false;
      this.#socket.resume();
    }
    this.#flush();
  };

  /** Reads and discards: closing with unread bytes would reset the connection and lose our last frames. */
  #endIfClosed(): void {
    if (!this.connection.closed || this.#ending) return;
    this.#ending = true;
    this.#stopTicking();
    this.#socket.end();
    this.#socket.resume();
    const cancel = this.#clock.after(lingerMs, () => this.#socket.destroy());
    this.#socket.once("close", cancel);
  }

  #gone(why: string): void {
    this.#stopTicking();
    this.connection.socketClosed(why);
    this.#socket.destroy();
    this.#written(); // a batch that will never be written is released
  }

  #tickLater(): void {
    this.#stopTicking = this.#clock.after(tickMs, () => {
      this.connection.tick(this.#clock.monotonicMs());
      if (!this.connection.closed) this.#tickLater();
      this.#flush();
    });
  }
}

/** What was read before the socket was taken over, and is not processed yet. */
function takeReadable(socket: Duplex): Buffer | null {
  return socket.readableLength > 0 ? (socket.read() as Buffer | null) : null;
}
