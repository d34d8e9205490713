/**
 * One WebSocket conversation: JSON messages both ways, checked by the endpoint's schemas.
 *
 * S1. What waits to be handled is bounded: when `receivedMax` messages wait, the connection is read no further.
 * S2. What waits to be sent is bounded: `send` resolves when the peer has taken enough, and a peer that takes nothing
 *     for `stalledMs` is cut off.
 * S3. A peer that answers no ping is cut off, so that a dead connection does not stay for hours.
 */
import type { WebSocket } from "ws";
import type { z } from "zod";
import type { Clock } from "#base/clock.ts";

export type Conversation<Received = unknown, Sent = unknown> = {
  /** Ends when the peer closes. */
  readonly messages: AsyncIterable<Received>;
  readonly send: (message: Sent) => Promise<void>;
  /** Aborted when the connection has gone. */
  readonly signal: AbortSignal;
};

export type SocketLimits = {
  readonly receivedMax: number;
  readonly unsentBytesMax: number;
  readonly stalledMs: number;
  readonly pingMs: number;
};

export const socketLimitsDefault: SocketLimits = {
  receivedMax: 64,
  unsentBytesMax: 1024 * 1024,
  stalledMs: 30_000,
  pingMs: 30_000,
};

/** Close codes (RFC 6455, section 7.4). */
const closeCode = { normal: 1000, invalid: 1007, policy: 1008, internal: 1011 } as const;

export class SocketConversation implements Conversation {
  readonly #socket: WebSocket;
  readonly #schema: z.ZodType;
  readonly #clock: Clock;
  readonly #limits: SocketLimits;
  readonly #gone = new AbortController();
  readonly #received: unknown[] = [];
  #wake = Promise.withResolvers<void>();
  #answered = true;
  #cancelPing = (): void => {};

  constructor(socket: WebSocket, receives: z.ZodType, clock: Clock, limits: SocketLimits = socketLimitsDefault) {
    this.#socket = socket;
    this.#schema = receives;
    this.#clock = clock;
    this.#limits = limits;
    socket.on("message", (data: Buffer, isBinary: boolean) => this.#take(data, isBinary));
    socket.on("pong", () => (this.#answered = true));
    socket.on("ping", () => {
      if (socket.bufferedAmount > limits.unsentBytesMax) socket.terminate(); // it sends pings and reads no answers
    });
    socket.on("error", () => socket.terminate());
    socket.on("close", () => this.#end());
    this.#ping();
  }

  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  get messages(): AsyncIterable<unknown> {
    return { [Symbol.asyncIterator]: () => this.#read() };
  }

  /** A property, so that a handler may take it out of the conversation. */
  readonly send = async (message: unknown): Promise<void> => {
    this.signal.throwIfAborted();
    this.#socket.send(JSON.stringify(message));
    const startedMs = this.#clock.monotonicMs();
    while (this.#socket.bufferedAmount > this.#limits.unsentBytesMax) {
      if (this.#clock.monotonicMs() - startedMs >= this.#limits.stalledMs) this.#socket.terminate();
      await this.#clock.sleep(20, this.signal);
    }
  };

  /** Ends the conversation; `error` is what the handler threw, which the peer is not told. */
  close(error?: unknown): void {
    this.#socket.close(error === undefined ? closeCode.normal : closeCode.internal);
    this.#clock.after(5_000, () => this.#socket.terminate()); // a peer that does not answer the close
  }

  async *#read(): AsyncGenerator<unknown> {
    for (;;) {
      while (this.#received.length > 0) {
        yield this.#received.shift();
        if (this.#received.length < this.#limits.receivedMax / 2) this.#socket.resume();
      }
      if (this.signal.aborted) return;
      await this.#wake.promise;
      this.#wake = Promise.withResolvers();
    }
  }

  #take(data: Buffer, isBinary: boolean): void {
    if (isBinary) return this.#socket.close(closeCode.policy, "send JSON as text");
    let given: unknown;
    try {
      given = JSON.parse(data.toString("utf8"));
    } catch {
      return this.#socket.close(closeCode.invalid, "a message is not JSON");
    }
    const parsed = this.#schema.safeParse(given);
    if (!parsed.success) return this.#socket.close(closeCode.policy, "a message does not have the right form");
    this.#received.push(parsed.data);
    if (this.#received.length >= this.#limits.receivedMax) this.#socket.pause();
    this.#wake.resolve();
  }

  #ping(): void {
    this.#cancelPing = this.#clock.after(this.#limits.pingMs, () => {
      if (!this.#answered) return this.#socket.terminate();
      this.#answered = false;
      this.#socket.ping();
      this.#ping();
    });
  }

  #end(): void {
    this.#cancelPing();
    this.#gone.abort(new Error("the WebSocket connection has gone"));
    this.#wake.resolve();
  }
}
