/**
 * The caller at the other end of a connection. Nearly every call of a connection has exactly the same header as the
 * call before; then nothing is hashed or looked up. A header is compared only with headers that this connection itself
 * sent before.
 */
import type { Clock } from "#base/clock.ts";
import type { Authenticator, TaskVerdict } from "./authenticate.ts";
import { stillCounts, type Identified } from "./identified.ts";
import type { PeerCertificate } from "#edge/tls/peer-certificate.ts";

export class ConnectionIdentity {
  readonly #authenticator: Authenticator;
  readonly #clock: Clock;
  readonly #certificate: PeerCertificate | undefined;
  readonly #address: string;
  readonly #isTask: (() => TaskVerdict | Promise<TaskVerdict>) | undefined;
  /** Determined once: a connection stays with the process that made it. */
  #verdict: TaskVerdict | Promise<TaskVerdict> | undefined;
  #last:
    | {
        readonly authorization: string | undefined;
        readonly outcome: Identified & { readonly ok: true };
        readonly generation: number;
      }
    | undefined;

  constructor(
    authenticator: Authenticator,
    clock: Clock,
    connection: {
      readonly certificate: PeerCertificate | undefined;
      readonly address: string;
      readonly isTask?: (() => TaskVerdict | Promise<TaskVerdict>) | undefined;
    },
  ) {
    this.#authenticator = authenticator;
    this.#clock = clock;
    this.#certificate = connection.certificate;
    this.#address = connection.address;
    this.#isTask = connection.isTask;
  }

  get address(): string {
    return this.#address;
  }

  /**
   * A promise only if something must be determined first: whether a token is valid, or whether the caller is a task.
   */
  identify(authorization: string | undefined): Identified | Promise<Identified> {
    const last = this.#last;
    if (
      last &&
      last.authorization === authorization &&
      last.generation === this.#authenticator.generation &&
      stillCounts(last.outcome, this.#clock)
    )
      return last.outcome;
    const { generation } = this.#authenticator;
    const outcome = this.#authenticator.authenticate({
      authorization,
      certificate: this.#certificate,
      address: this.#address,
      isTask: this.#isTask && (() => this.#taskVerdict()),
    });
    const keep = (known: Identified): Identified => {
      if (known.ok) this.#last = { authorization, outcome: known, generation };
      return known;
    };
    return outcome instanceof Promise ? outcome.then(keep) : keep(outcome);
  }

  /** Only an unclear result is determined again: the next call may succeed. */
  #taskVerdict(): TaskVerdict | Promise<TaskVerdict> {
    const forgetUnclear = (verdict: TaskVerdict): TaskVerdict => {
      if (verdict === "unclear") this.#verdict = undefined;
      return verdict;
    };
    if (this.#verdict !== undefined) return this.#verdict;
    const found = this.#isTask?.() ?? "no";
    if (!(found instanceof Promise)) return forgetUnclear((this.#verdict = found));
    return (this.#verdict = found.then(forgetUnclear));
  }
}
