/** The time limits of a connection. Remembers when things began, and says on request what is overdue. */
import { errorCode, type ErrorCode } from "#h2/frames/error-codes.ts";
import type { H2Limits } from "./limits.ts";

export type Verdict =
  | { readonly kind: "fine" }
  | { readonly kind: "ping" }
  | { readonly kind: "final-goaway" }
  | { readonly kind: "close"; readonly code: ErrorCode; readonly why: string };

export type WatchedState = {
  readonly ready: boolean;
  readonly settingsAcked: boolean;
  readonly streams: number;
  readonly unsentBytes: number;
};

const fine: Verdict = { kind: "fine" };
const ping: Verdict = { kind: "ping" };
const finalGoaway: Verdict = { kind: "final-goaway" };
const never = -1;
/** A drain's second GOAWAY waits for the peer's answer to a PING, but not longer than this. */
const drainAnswerMs = 1_000;

export class Watch {
  readonly #limits: H2Limits;
  readonly #startedAtMs: number;
  #ready = false;
  #heardAtMs: number;
  #wroteAtMs: number;
  #midFrameSinceMs = never;
  #idleSinceMs: number;
  #pingedAtMs = never;
  #drainingSinceMs = never;
  #drainAnnounced = false;

  constructor(limits: H2Limits, nowMs: number) {
    this.#limits = limits;
    this.#startedAtMs = nowMs;
    this.#heardAtMs = nowMs;
    this.#wroteAtMs = nowMs;
    this.#idleSinceMs = nowMs;
  }

  get isReady(): boolean {
    return this.#ready;
  }

  ready(): void {
    this.#ready = true;
  }

  heard(nowMs: number): void {
    this.#heardAtMs = nowMs;
    this.#pingedAtMs = never;
  }

  wrote(nowMs: number): void {
    this.#wroteAtMs = nowMs;
  }

  /** Whether the last read ended inside something that must be complete soon. */
  midFrame(is: boolean, nowMs: number): void {
    if (!is) this.#midFrameSinceMs = never;
    else if (this.#midFrameSinceMs === never) this.#midFrameSinceMs = nowMs;
  }

  busy(): void {
    this.#idleSinceMs = never;
  }

  idle(nowMs: number): void {
    this.#idleSinceMs = nowMs;
  }

  drainBegins(nowMs: number): void {
    this.#drainingSinceMs = nowMs;
  }

  drainAnnounced(): void {
    this.#drainAnnounced = true;
  }

  look(nowMs: number, state: WatchedState): Verdict {
    const { prefaceMs, settingsAckMs, frameMs, idleMs, keepaliveMs, keepaliveAckMs, writeStallMs, drainMs } =
      this.#limits;
    const over = (sinceMs: number, limitMs: number): boolean => sinceMs !== never && nowMs - sinceMs >= limitMs;
    if (!state.ready)
      return over(this.#startedAtMs, prefaceMs)
        ? close(errorCode.protocolError, "no preface and SETTINGS in time")
        : fine;
    if (!state.settingsAcked && over(this.#startedAtMs, settingsAckMs))
      return close(errorCode.settingsTimeout, "SETTINGS were not acknowledged");
    if (over(this.#midFrameSinceMs, frameMs))
      return close(errorCode.enhanceYourCalm, "a header block or frame took too long");
    if (state.unsentBytes === 0) this.#wroteAtMs = nowMs;
    else if (over(this.#wroteAtMs, writeStallMs)) return close(errorCode.enhanceYourCalm, "the peer does not read");
    if (over(this.#drainingSinceMs, drainMs)) return close(errorCode.noError, "draining took too long");
    if (!this.#drainAnnounced && over(this.#drainingSinceMs, drainAnswerMs)) return finalGoaway;
    if (state.streams === 0 && over(this.#idleSinceMs, idleMs)) return close(errorCode.noError, "idle");
    if (over(this.#pingedAtMs, keepaliveAckMs)) return close(errorCode.noError, "the peer no longer answers");
    if (this.#pingedAtMs === never && over(this.#heardAtMs, keepaliveMs)) {
      this.#pingedAtMs = nowMs;
      return ping;
    }
    return fine;
  }
}

const close = (code: ErrorCode, why: string): Verdict => ({ kind: "close", code, why });
