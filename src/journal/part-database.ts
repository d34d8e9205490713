/**
 * One of several databases of a journal. It is created under the cluster's name and its own place ("mill 2/3"), so that
 * a list of databases in another order or number is refused instead of looked through for shards that lie elsewhere.
 */
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { Cluster, Journal } from "./journal.ts";

export type PartPlace = { readonly index: number; readonly count: number; readonly clock: Pick<Clock, "after"> };

type Wanted = { readonly shards: number; readonly clusterId: string };

/** What concerns all databases does not wait longer than this for one of them. */
const briefMs = 2_000;

/** The database could not be reached, or did not answer. */
export const isAway = (error: unknown): boolean => isFault(error, "unavailable") || isFault(error, "unknown-outcome");

export class PartDatabase {
  readonly name: string;
  readonly #journal: Journal;
  readonly #place: string;
  readonly #clock: Pick<Clock, "after">;
  /** What it must be opened with before it is used: it could not be reached when the others were opened. */
  #toOpen: Wanted | undefined;
  #opening: Promise<Cluster> | undefined;
  #isLate = false;
  #featureLevel = 0;

  constructor(journal: Journal, { index, count, clock }: PartPlace) {
    this.#journal = journal;
    this.#clock = clock;
    this.#place = `${index + 1}/${count}`;
    this.name = `database ${index + 1} of ${count}`;
  }

  /** As far as it is known: 0 before it was reached. It never falls, so an old answer is too low at worst. */
  get featureLevel(): number {
    return this.#featureLevel;
  }

  open(wanted: Wanted): Promise<Cluster> {
    this.#toOpen = wanted;
    return this.#open(wanted);
  }

  /** What the cluster turned out to be: a database that is opened later has to agree. */
  mustBe({ clusterId, shards }: Wanted): void {
    if (this.#toOpen) this.#toOpen = { clusterId, shards };
  }

  async cluster(): Promise<Cluster> {
    return this.#checked(await this.ask((journal) => journal.cluster()));
  }

  async raiseFeatureLevel(): Promise<void> {
    const level = await this.askBriefly((journal) => journal.raiseFeatureLevel());
    this.#featureLevel = Math.max(this.#featureLevel, level);
  }

  ask<T>(ask: (journal: Journal) => Promise<T>): Promise<T> {
    return this.#toOpen ? this.#openFirst().then(() => ask(this.#journal)) : ask(this.#journal);
  }

  async *iterate<T>(ask: (journal: Journal) => AsyncIterable<T>): AsyncIterable<T> {
    if (this.#toOpen) await this.#openFirst();
    yield* ask(this.#journal);
  }

  /** A database that hangs holds up the first caller for a short time, and none after it until it has answered. */
  async askBriefly<T>(ask: (journal: Journal) => Promise<T>): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const away = (): Fault => new Fault("unavailable", "ask journal", { database: this.name, why: "no answer" });
    if (this.#isLate) throw away();
    const answer = this.ask(ask);
    const cancel = this.#clock.after(briefMs, () => {
      this.#isLate = true;
      const over = (): void => void (this.#isLate = false);
      answer.then(over, over);
      reject(away());
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      cancel();
    }
  }

  /** Many callers, one opening. */
  async #openFirst(): Promise<void> {
    const wanted = this.#toOpen;
    if (!wanted) return;
    this.#opening ??= this.#open(wanted).finally(() => (this.#opening = undefined));
    const { clusterId, shards } = await this.#opening;
    if (clusterId === wanted.clusterId && shards === wanted.shards) return;
    this.#toOpen = wanted;
    throw new Fault("invalid", "open journal", { database: this.name, why: "it belongs to a different cluster" });
  }

  async #open({ clusterId, shards }: Wanted): Promise<Cluster> {
    const opened = await this.#journal.open({ shards, clusterId: `${clusterId} ${this.#place}` });
    const cluster = this.#checked(opened);
    this.#toOpen = undefined;
    return cluster;
  }

  #checked({ clusterId, shards, featureLevel }: Cluster): Cluster {
    const cut = clusterId.lastIndexOf(" ");
    const [name, place] = cut < 0 ? [clusterId, "1/1"] : [clusterId.slice(0, cut), clusterId.slice(cut + 1)];
    if (place !== this.#place)
      throw new Fault("invalid", "open journal", {
        database: this.name,
        createdAs: place,
        why: "a database keeps its place in journal.servers: shards lie in it by the place that it was created for",
      });
    this.#featureLevel = Math.max(this.#featureLevel, featureLevel);
    return { clusterId: name, shards, featureLevel: this.#featureLevel };
  }
}
