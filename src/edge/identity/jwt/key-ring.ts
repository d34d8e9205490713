/** An issuer's keys: fixed, or fetched from the issuer within limits of time and rate. */
import { isFault, type Fault } from "#base/fault.ts";
import type { Clock } from "#base/clock.ts";
import { keySetOfText, type KeySet } from "./jwks.ts";

export type KeyRing = {
  /** The current keys. Fault "unavailable" if there are none. */
  current(): Promise<KeySet>;
  /** For a token that names an unknown key: newer keys, or undefined if there are none now. */
  newer(): Promise<KeySet | undefined>;
};

export const fixedKeys = (keys: KeySet): KeyRing => ({
  current: () => Promise.resolve(keys),
  newer: () => Promise.resolve(undefined),
});

export type RemoteKeysPorts = {
  readonly clock: Clock;
  /** Fetches the text, within its own limits of time and size; rejects with a Fault. */
  readonly fetchText: () => Promise<string>;
  readonly onTrouble: (fault: Fault) => void;
};

/**
 * Fetched on first use and again when they are old; old keys are used until newer ones are there. However many tokens
 * name unknown keys, the issuer is asked at most once per cooldown, with one request at a time.
 */
export class RemoteKeys implements KeyRing {
  readonly #ports: RemoteKeysPorts;
  readonly #settings: { readonly url: string; readonly refreshMs: number; readonly cooldownMs: number };
  #keys: { readonly set: KeySet; readonly fetchedMonoMs: number } | undefined;
  #lastRequest: { readonly atMonoMs: number; readonly outcome: Promise<KeySet> } | undefined;

  constructor(
    settings: { readonly url: string; readonly refreshMs: number; readonly cooldownMs: number },
    ports: RemoteKeysPorts,
  ) {
    this.#settings = settings;
    this.#ports = ports;
  }

  async current(): Promise<KeySet> {
    const known = this.#keys;
    if (!known) return this.#ask();
    if (this.#ports.clock.monotonicMs() - known.fetchedMonoMs >= this.#settings.refreshMs) void this.newer();
    return known.set;
  }

  async newer(): Promise<KeySet | undefined> {
    const before = this.#keys?.set;
    // The failure was already reported; the caller continues with the known keys.
    const after = await this.#ask().catch(() => undefined);
    return after === before ? undefined : after;
  }

  #ask(): Promise<KeySet> {
    const nowMs = this.#ports.clock.monotonicMs();
    if (this.#lastRequest && nowMs - this.#lastRequest.atMonoMs < this.#settings.cooldownMs)
      return this.#lastRequest.outcome;
    const outcome = this.#fetch();
    this.#lastRequest = { atMonoMs: nowMs, outcome };
    return outcome;
  }

  async #fetch(): Promise<KeySet> {
    try {
      const set = keySetOfText(await this.#ports.fetchText(), this.#settings.url);
      this.#keys = { set, fetchedMonoMs: this.#ports.clock.monotonicMs() };
      return set;
    } catch (error) {
      if (isFault(error)) this.#ports.onTrouble(error);
      throw error;
    }
  }
}
