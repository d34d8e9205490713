/**
 * One connection, as both ends see it: frames in, frames out, and a heartbeat. Knows nothing of calls. A peer that is
 * silent for two heartbeats is gone, whatever its socket says (half-open).
 */
import type { Socket } from "node:net";
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import { encodeFrame, FrameDecoder, protocolVersion, type Frame, type FrameKind } from "./frames.ts";

export type ConnectionLimits = {
  readonly frameBytesMax: number;
  /** Bytes that may wait to be sent before the peer counts as stuck. */
  readonly bufferedBytesMax: number;
  readonly pingMs: number;
  /** From the socket's opening until the peer's hello. */
  readonly connectMs: number;
};

/** Also the limit for a goodbye that comes instead. */
const helloBytesMax = 4_096;

export class Connection {
  readonly #socket: Socket;
  readonly #limits: ConnectionLimits;
  readonly #clock: Clock;
  readonly #decoder: FrameDecoder;
  readonly #ready = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<Fault>();
  #greeted = false;
  #open = true;
  #heardAtMs: number;
  #stopTimer: () => void = () => {};
  /** Called for every frame after the hello, except heartbeats. */
  onFrame: (frame: Frame) => void = () => {};

  constructor(socket: Socket, clock: Clock, limits: ConnectionLimits) {
    this.#socket = socket;
    this.#limits = limits;
    this.#clock = clock;
    this.#decoder = new FrameDecoder(helloBytesMax);
    this.#heardAtMs = clock.monotonicMs();
    this.#ready.promise.catch(() => {}); // also reported through `closed`
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", (error) =>
      this.close(new Fault("unavailable", "use connection", { why: error.message }, error)),
    );
    socket.on("close", () => this.close(new Fault("unavailable", "use connection", { why: "closed by the peer" })));
    this.#send("hello", 0, { protocol: protocolVersion });
    this.#stopTimer = clock.after(limits.connectMs, () => {
      this.close(new Fault("unavailable", "greet peer", { waitedMs: limits.connectMs }));
    });
  }

  /** Resolves when the peer has sent its hello; rejects when the connection is lost before. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Resolves with the reason once the connection is gone. */
  get closed(): Promise<Fault> {
    return this.#closed.promise;
  }

  get isOpen(): boolean {
    return this.#open;
  }

  /** Throws "unavailable" when the connection is closed, "exhausted" when the frame is too large. */
  send(kind: FrameKind, id: number, body?: unknown): void {
    if (!this.#open) throw new Fault("unavailable", "send frame", { why: "the connection is closed" });
    this.#send(kind, id, body);
    if (this.#socket.writableLength > this.#limits.bufferedBytesMax)
      this.close(
        new Fault("unavailable", "send frame", { why: "the peer does not read", bytes: this.#socket.writableLength }),
      );
  }

  /** Resolves when everything sent has left this process, or the connection is gone. */
  async drained(): Promise<void> {
    if (!this.#open || !this.#socket.writableNeedDrain) return;
    const drain = Promise.withResolvers<void>();
    this.#socket.once("drain", drain.resolve);
    await Promise.race([drain.promise, this.closed]);
    this.#socket.off("drain", drain.resolve);
  }

  close(why: Fault): void {
    if (!this.#open) return;
    this.#open = false;
    this.#stopTimer();
    this.#ready.reject(why);
    this.#closed.resolve(why);
    this.#socket.destroySoon();
    // Some peers never acknowledge the end; the socket must not outlive the connection for long.
    const cancel = this.#clock.after(1_000, () => this.#socket.destroy());
    this.#socket.once("close", cancel);
  }

  /** Sends the reason to the peer before closing. */
  closePolitely(why: Fault): void {
    if (this.#open && this.#socket.writable) this.#send("goodbye", 0, { code: why.code, why: why.message });
    this.close(why);
  }

  #send(kind: FrameKind, id: number, body?: unknown): void {
    this.#socket.write(encodeFrame(kind, id, body, this.#limits.frameBytesMax));
  }

  #read(chunk: Uint8Array): void {
    if (!this.#open) return;
    this.#heardAtMs = this.#clock.monotonicMs();
    try {
      for (const frame of this.#decoder.push(chunk)) {
        this.#receive(frame);
        if (!this.#open) return;
      }
    } catch (error) {
      const why = isFault(error) ? error : new Fault("internal", "handle frame", {}, error);
      this.closePolitely(why);
    }
  }

  #receive(frame: Frame): void {
    if (frame.kind === "goodbye") {
      const said = frame.body as { why?: unknown } | undefined;
      return this.close(new Fault("unavailable", "use connection", { peerSays: String(said?.why).slice(0, 300) }));
    }
    if (!this.#greeted) return this.#greet(frame);
    if (frame.kind === "ping") return this.send("pong", 0);
    if (frame.kind !== "pong") this.onFrame(frame);
  }

  #greet(frame: Frame): void {
    const protocol = (frame.body as { protocol?: unknown } | undefined)?.protocol;
    if (frame.kind !== "hello" || protocol !== protocolVersion)
      throw new Fault("invalid", "greet peer", {
        got: frame.kind,
        protocol: String(protocol),
        wanted: protocolVersion,
      });
    this.#greeted = true;
    this.#decoder.bytesMax = this.#limits.frameBytesMax;
    this.#stopTimer();
    this.#beat();
    this.#ready.resolve();
  }

  #beat(): void {
    this.#stopTimer = this.#clock.after(this.#limits.pingMs, () => {
      const silentMs = this.#clock.monotonicMs() - this.#heardAtMs;
      if (silentMs >= 2 * this.#limits.pingMs)
        return this.close(new Fault("unavailable", "hear peer", { silentMs, why: "no answer to a ping" }));
      this.send("ping", 0);
      if (this.#open) this.#beat();
    });
  }
}
