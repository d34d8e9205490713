/** A client's requests that wait for the peer to allow another stream, in the order in which they were made. */
import { Fault } from "#base/fault.ts";
import type { OutgoingHeaders } from "#h2/hpack/hpack-encoder.ts";
import type { Stream } from "./stream.ts";

export type WaitingRequest = { readonly stream: Stream; readonly headers: OutgoingHeaders; readonly end: boolean };

export class WaitingRequests {
  readonly #max: number;
  /** A Map keeps the order and lets any of them leave: whoever waits may also give up. */
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

  /** The one that has waited longest, which waits no more. */
  next(): WaitingRequest | undefined {
    for (const [stream, request] of this.#requests) {
      this.#requests.delete(stream);
      return request;
    }
    return undefined;
  }
}
