import type { HostSettings } from "./settings.ts";
import type { HostedShard } from "./shard.ts";

/**
 * Counts accepted requests that are not answered yet, per shard and for the node: above the limit a request is refused
 * at once.
 */
export class Load {
  readonly #settings: HostSettings;
  #requests = 0;
  #bytes = 0;
  #heldBytes = 0;

  constructor(settings: HostSettings) {
    this.#settings = settings;
  }

  /** False if a limit is reached. */
  admit(shard: HostedShard, bytes: number): boolean {
    const { requestsMax, requestBytesMax, nodeRequestsMax, nodeRequestBytesMax } = this.#settings;
    if (shard.requests >= requestsMax || this.#requests >= nodeRequestsMax) return false;
    // A request larger than the limit is accepted if it is the only one.
    if (shard.requestBytes > 0 && shard.requestBytes + bytes > requestBytesMax) return false;
    if (this.#bytes > 0 && this.#bytes + bytes > nodeRequestBytesMax) return false;
    this.#add(shard, 1, bytes);
    return true;
  }

  leave(shard: HostedShard, bytes: number): void {
    this.#add(shard, -1, -bytes);
  }

  /** For a request that is held until there is work; false if the limit is reached. */
  hold(bytes: number): boolean {
    if (this.#heldBytes + bytes > this.#settings.heldBytesMax) return false;
    this.#heldBytes += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#heldBytes -= bytes;
  }

  #add(shard: HostedShard, requests: number, bytes: number): void {
    shard.requests += requests;
    shard.requestBytes += bytes;
    this.#requests += requests;
    this.#bytes += bytes;
  }
}
