/** The TCP sockets: one message in, at most one out, then the stream is closed; all within limits on time and bytes. */
import { connect, createServer, type Server, type Socket } from "node:net";
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import { Lobby } from "#base/calls/lobby.ts";
import type { Address } from "./address.ts";
import type { StreamMessage } from "./wire/messages.ts";
import type { RimLimits } from "./rim-limits.ts";
import type { StreamReader } from "./wire/stream-reader.ts";

export type TcpPorts = {
  readonly clock: Clock;
  readonly limits: RimLimits;
  readonly streamTimeoutMs: number;
  readonly reader: () => StreamReader;
  /** Returns the answer to a message. */
  readonly answerStream: (message: StreamMessage) => Uint8Array | undefined;
  /** Returns the answer to an invalid message. */
  readonly refused: (why: string) => Uint8Array | undefined;
  readonly log: (line: string) => void;
};

export type DialRequest = {
  readonly to: Address;
  readonly bytes: Uint8Array;
  readonly wantsAnswer: boolean;
  readonly withinMs: number;
};

export class TcpPort {
  readonly #server: Server;
  readonly #ports: TcpPorts;
  readonly #open = new Set<Socket>();
  readonly #in = new Lobby<Socket>();
  #out = 0;
  /** Streams whose message is not complete yet, and how many bytes each holds. */
  readonly #held = new Map<Socket, number>();
  /** Streams refused because there were too many. */
  dropped = 0;

  private constructor(server: Server, ports: TcpPorts) {
    this.#server = server;
    this.#ports = ports;
    server.maxConnections = 2 * ports.limits.streamsInMax; // some are being closed
    server.on("connection", (socket) => this.#accept(socket));
    server.on("drop", () => void (this.dropped += 1));
    server.on("error", (error) => ports.log(`mesh: TCP: ${error.message}`));
  }

  static async open({ host, port }: Address, ports: TcpPorts): Promise<TcpPort> {
    const server = createServer({ pauseOnConnect: false });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once("error", reject);
    server.listen({ host, port, exclusive: true }, resolve);
    try {
      await promise;
    } catch (error) {
      throw new Fault("exhausted", "listen for the mesh", { host, port, on: "TCP" }, error);
    }
    server.off("error", reject);
    return new TcpPort(server, ports);
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address ? address.port : 0;
  }

  #accept(socket: Socket): void {
    socket.on("error", () => {}); // the other side went away; "close" follows
    const { streamsInMax: max, streamsInFromOneHostMax: perNetworkMax } = this.#ports.limits;
    const evicted = this.#in.enter(socket, socket.remoteAddress ?? "", { max, perNetworkMax });
    if (evicted) {
      this.dropped += 1;
      evicted.guest.destroy();
    }
    socket.once("close", () => this.#in.leave(socket));
    const { streamTimeoutMs, answerStream, refused } = this.#ports;
    this.#read(socket, streamTimeoutMs, (outcome) => {
      const answer = "why" in outcome ? refused(outcome.why) : answerStream(outcome.message);
      if (answer) socket.end(answer);
      else socket.end();
    });
  }

  /** Returns the answer; undefined if none is wanted. Throws "unavailable" if none comes in time. */
  async dial({ to, bytes, wantsAnswer, withinMs }: DialRequest): Promise<StreamMessage | undefined> {
    if (this.#out >= this.#ports.limits.streamsOutMax)
      throw new Fault("exhausted", "reach a member", { streams: this.#out });
    this.#out += 1;
    const { promise, resolve, reject } = Promise.withResolvers<StreamMessage | undefined>();
    const failed = (why: string, cause?: unknown): void =>
      reject(new Fault("unavailable", "reach a member", { host: to.host, port: to.port, why }, cause));
    const socket = connect({ host: to.host, port: to.port });
    socket.on("error", (error) => failed(error.message, error));
    socket.once("close", () => failed("it closed the stream"));
    socket.write(bytes);
    if (wantsAnswer)
      this.#read(socket, withinMs, (outcome) => ("why" in outcome ? failed(outcome.why) : resolve(outcome.message)));
    else {
      const stop = this.#ports.clock.after(withinMs, () => socket.destroy());
      this.#open.add(socket);
      socket.once("close", () => (stop(), this.#open.delete(socket)));
      socket.resume();
      socket.end(() => resolve(undefined));
    }
    try {
      return await promise;
    } finally {
      this.#out -= 1;
      socket.destroy();
    }
  }

  /** Reads one message; calls back once, and never for a stream that was closed before. */
  #read(
    socket: Socket,
    withinMs: number,
    done: (outcome: { readonly message: StreamMessage } | { readonly why: string }) => void,
  ): void {
    const { clock, limits, reader: makeReader } = this.#ports;
    const reader = makeReader();
    let isDone = false;
    const finish = (outcome: { readonly message: StreamMessage } | { readonly why: string }): void => {
      if (isDone) return;
      isDone = true;
      this.#held.delete(socket);
      done(outcome);
    };
    const stop = clock.after(withinMs, () => {
      finish({ why: "it took too long" });
      socket.destroy();
    });
    this.#open.add(socket);
    socket.on("data", (chunk: Buffer) => {
      if (isDone) return;
      this.#held.set(socket, (this.#held.get(socket) ?? 0) + chunk.length);
      if (this.#closeLargest(limits.streamBytesHeldMax) === socket) return;
      try {
        const message = reader.push(chunk);
        if (message) finish({ message });
      } catch (error) {
        finish({ why: isFault(error) ? error.message : `internal: ${String(error)}` });
      }
    });
    socket.once("close", () => {
      stop();
      this.#open.delete(socket);
      this.#held.delete(socket);
      isDone = true;
    });
  }

  /** If too many bytes are held, closes the stream that holds the most. */
  #closeLargest(bytesMax: number): Socket | undefined {
    let [total, most] = [0, 0];
    let largest: Socket | undefined;
    for (const [socket, bytes] of this.#held) {
      total += bytes;
      if (bytes <= most) continue;
      most = bytes;
      largest = socket;
    }
    if (total <= bytesMax || !largest) return undefined;
    this.dropped += 1;
    this.#held.delete(largest);
    largest.destroy();
    return largest;
  }

  async close(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    for (const socket of this.#open) socket.destroy();
    await promise;
  }
}
