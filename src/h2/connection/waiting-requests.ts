/** A client's requests that wait until the peer allows another stream, in the order in which they were made. */
import { Fault } from "#base/fault.ts";
import type { OutgoingHeaders } from "#h2/hpack/hpack-encoder.ts";
import type { Stream } from "./stream.ts";

export type WaitingRequest = { readonly stream: Stream; readonly headers: OutgoingHeaders; readonly end: boolean };

export class WaitingRequests {
  readonly #max: number;
  /** A Map keeps the order and allows removing any of them: a waiting request may be cancelled. */
  readonly #requests = new Map<Stream, WaitingRequest>();

  constructor(max: number) {
    this.#max = max;
  }

  get count(): number {
    return this.#requests.size;
  }

  add(request: WaitingRequest): void {
    if (this.#requests.size >= this.#max) throw new Fault("exhausted", "open stream", { streamsWaitingMax: this.#max });
    this.#requests.set(request.stream, request);
  }

  remove(stream: Stream): void {
    this.#requests.delete(stream);
  }

  /** Removes and returns the one that has waited longest. */
  next(): WaitingRequest | undefined {
    for (const [stream, request] of this.#requests) {
      this.#requests.delete(stream);
      return request;
    }
    return undefined;
  }
}
