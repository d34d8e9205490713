/**
 * Who is at the other end of a connection. Nearly every call of a connection brings the very header that the call
 * before it brought; then nothing is hashed and nothing is looked up. What is compared with is only what this
 * connection has itself sent before.
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
  /** Found out once: a connection stays with the process that made it. */
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

  /** A promise only where something has to be found out first: whether a token is genuine, or the caller a task. */
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

  /** Only what could not be told is asked again: the next call may be luckier. */
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
