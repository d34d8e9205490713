import { afterAwake, type Clock } from "#base/clock.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";

/** The time limit for receiving a message; 4 MiB need 35 kB a second. */
const bodyMsMax = 120_000;

const tooMany = new GrpcError(
  grpcCode.unavailable,
  "this node has no memory for more large messages now: try again in a moment",
);
const tooSlow = new GrpcError(grpcCode.deadlineExceeded, "the rest of the message did not arrive within two minutes");

/**
 * Memory for incomplete messages, of all calls of a server. A connection may hold at most as much as is left for all
 * others. Without this, a caller that begins hundreds of large messages and completes none would fill the machine's
 * memory.
 */
export class BodyMemory {
  readonly #bytesMax: number;
  readonly #byPeer = new WeakMap<object, { bytes: number }>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** False if the limit is reached. */
  take(peer: object, bytes: number): boolean {
    const own = this.#byPeer.get(peer) ?? { bytes: 0 };
    if (own.bytes + bytes > this.#bytesMax - this.#bytes - bytes) return false;
    this.#byPeer.set(peer, own);
    own.bytes += bytes;
    this.#bytes += bytes;
    return true;
  }

  give(peer: object, bytes: number): void {
    const own = this.#byPeer.get(peer);
    if (own) own.bytes -= bytes;
    this.#bytes -= bytes;
  }
}

/** The part that one call holds. */
export class HeldBodies {
  readonly #memory: BodyMemory;
  readonly #peer: object;
  readonly #cancelLate: () => void;
  #bytes = 0;

  /** `late` is called when the rest of the message does not arrive in time. */
  constructor(memory: BodyMemory, peer: object, clock: Clock, late: (why: GrpcError) => void) {
    this.#memory = memory;
    this.#peer = peer;
    this.#cancelLate = afterAwake(clock, bodyMsMax, () => late(tooSlow));
  }

  /** Throws if the limit is reached. */
  take(bytes: number): void {
    if (!this.#memory.take(this.#peer, bytes)) throw tooMany;
    this.#bytes += bytes;
  }

  /** The whole request has arrived. */
  whole(): void {
    this.#cancelLate();
  }

  give(): void {
    this.#cancelLate();
    this.#memory.give(this.#peer, this.#bytes);
    this.#bytes = 0;
  }
}
