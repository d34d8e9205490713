/**
 * The machines that are attached to this node: where they are, what they report, and the stream that sends them goals.
 * Soft: it is rebuilt from what machines announce when they attach again, to this node or to another one.
 */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { MachineReport } from "#doors/deploy/health/judge.ts";
import type { Signed } from "#doors/deploy/signing/signing.ts";
import { countOf, type CensusQuestion, type Counted } from "./census.ts";
import type { GoalStore, Head } from "./goals.ts";
import type { KeyBook } from "./key-book.ts";
import { pageOf, type Page, type PageQuestion } from "./page.ts";
import { heldOf, tallyOf, type Known, type Standee, type Tally, type TallyQuestion } from "./tally.ts";

export type FindQuestion = { readonly tenant: string; readonly names: readonly string[] };

export type Machine = {
  readonly tenant: string;
  readonly machine: string;
  readonly region: string;
  readonly labels: readonly string[];
};

export type ServiceReport = Omit<MachineReport, "agoMs"> & {
  readonly service: string;
  readonly goalVersion: number;
};

/** What another node is told about a machine. */
export type Seen = Machine & { readonly reports: readonly (ServiceReport & { readonly agoMs: number })[] };

type Attached = Machine & {
  readonly reports: Map<string, ServiceReport & { readonly atMs: number }>;
  streams: number;
  seenAtMs: number;
};

const machinesMax = 10_000;
const servicesPerMachineMax = 100;
/** How long a goal may stay unseen here if the node that wrote it could not say so. */
const lookEveryMs = 2_000;
const forgottenAfterMs = 10 * 60_000;

export class FleetDesk {
  readonly #goals: GoalStore;
  readonly #keys: Pick<KeyBook, "listsAfter">;
  readonly #clock: Clock;
  readonly #moved: (machine: Machine, isHere: boolean) => void;
  readonly #machines = new Map<string, Attached>();
  readonly #looks = new Map<string, Look>();

  /** `moved`: a machine's first stream has begun, or its last one has ended. */
  constructor(
    goals: GoalStore,
    keys: Pick<KeyBook, "listsAfter">,
    clock: Clock,
    moved: (machine: Machine, isHere: boolean) => void = () => undefined,
  ) {
    this.#moved = moved;
    this.#goals = goals;
    this.#keys = keys;
    this.#clock = clock;
  }

  /**
   * A machine's goals: the newest of each service whose targets it matches, and every newer one until it leaves; before
   * them the lists of keys that are newer than `trust`, which is left out by machines that know of none.
   */
  async *attach(machine: Machine, trust: number | undefined, signal: AbortSignal): AsyncGenerator<Signed> {
    const attached = this.#attached(machine);
    attached.streams += 1;
    if (attached.streams === 1) this.#moved(machine, true);
    let listed = trust;
    const sent = new Map<string, number>();
    try {
      while (!signal.aborted) {
        attached.seenAtMs = this.#clock.monotonicMs();
        const watch = this.#watch(machine);
        if (listed !== undefined)
          for (const list of await this.#keys.listsAfter(listed)) {
            listed += 1;
            yield list;
          }
        for (const head of await watch.heads) {
          const { service, version, labels } = head.goal;
          if (!labels.every((label) => machine.labels.includes(label))) continue;
          if ((sent.get(service) ?? 0) >= version) continue;
          sent.set(service, version);
          yield head.signed;
        }
        await watch.news(signal);
      }
    } finally {
      attached.streams -= 1;
      if (attached.streams === 0) this.#moved(machine, false);
    }
  }

  report(machine: Machine, report: ServiceReport): void {
    const attached = this.#attached(machine);
    attached.seenAtMs = this.#clock.monotonicMs();
    if (!attached.reports.has(report.service) && attached.reports.size >= servicesPerMachineMax)
      throw new Fault("exhausted", "report", { machine: machine.machine, servicesMax: servicesPerMachineMax });
    attached.reports.set(report.service, { ...report, atMs: attached.seenAtMs });
  }

  /** A goal was written, here or on a node that says so: machines need not wait for the next look. */
  wake({ region }: { readonly region: string }): void {
    for (const [key, look] of this.#looks) if ((JSON.parse(key) as string[])[1] === region) look.end();
  }

  /** Where the machines of this node are. */
  places(): readonly Pick<Machine, "tenant" | "region">[] {
    const places = new Map<string, Pick<Machine, "tenant" | "region">>();
    for (const { tenant, region } of this.#machines.values())
      places.set(JSON.stringify([tenant, region]), { tenant, region });
    return [...places.values()];
  }

  regionOf(tenant: string, machine: string): string | undefined {
    return this.#machines.get(JSON.stringify([tenant, machine]))?.region;
  }

  counts(): { readonly attached: number; readonly silent: number } {
    const all = [...this.#machines.values()];
    const attached = all.filter(({ streams }) => streams > 0).length;
    return { attached, silent: all.length - attached };
  }

  page(question: PageQuestion): Page {
    return pageOf(this.known(), question);
  }

  count(question: CensusQuestion): Counted {
    return countOf(this.known(), question);
  }

  /** Those of the named machines that are known here. */
  find({ tenant, names }: FindQuestion): readonly Known[] {
    const nowMs = this.#clock.monotonicMs();
    return names.flatMap((machine) => {
      const found = this.#machines.get(JSON.stringify([tenant, machine]));
      return found ? [knownOf(found, nowMs)] : [];
    });
  }

  known(): readonly Known[] {
    const nowMs = this.#clock.monotonicMs();
    for (const [name, { streams, seenAtMs }] of this.#machines)
      if (streams === 0 && nowMs - seenAtMs > forgottenAfterMs) this.#machines.delete(name);
    return [...this.#machines.values()].map((one) => knownOf(one, nowMs));
  }

  /** The machines of a wave that are here, as counts. */
  tally(question: TallyQuestion): Tally {
    return tallyOf(this.known(), question);
  }

  held(question: TallyQuestion, names: ReadonlySet<string>): readonly Standee[] {
    return heldOf(this.known(), question, names);
  }

  /** A machine that was here before this node was restarted, so long ago; unless it has come back already. */
  remember(machine: Omit<Known, "isHeld">, sinceMs: number): void {
    const { tenant, region, labels } = machine;
    const key = keyOf(machine);
    const agoMs = machine.agoMs + sinceMs;
    if (agoMs > forgottenAfterMs || this.#machines.has(key) || this.#machines.size >= machinesMax) return;
    const nowMs = this.#clock.monotonicMs();
    const reports = machine.reports.map((one) => [one.service, { ...one, atMs: nowMs - one.agoMs - sinceMs }] as const);
    const known = { tenant, machine: machine.machine, region, labels, reports: new Map(reports) };
    this.#machines.set(key, { ...known, streams: 0, seenAtMs: nowMs - agoMs });
  }

  #attached(machine: Machine): Attached {
    // One tenant's machine cannot take another's place, whatever it calls itself.
    const key = keyOf(machine);
    const known = this.#machines.get(key);
    if (known && known.region === machine.region && known.labels.join() === machine.labels.join()) return known;
    if (!known && this.#machines.size >= machinesMax)
      throw new Fault("exhausted", "attach machine", { machinesMax, wants: "another node of the region" });
    const attached = { ...machine, reports: new Map(), streams: 0, seenAtMs: this.#clock.monotonicMs() };
    this.#machines.set(key, attached);
    return attached;
  }

  /** The store is asked once for all machines of a region, and again when there is news, or after a while. */
  #watch({ tenant, region }: Machine): Look {
    const key = JSON.stringify([tenant, region]);
    const known = this.#looks.get(key);
    if (known) return known;
    const ended = Promise.withResolvers<void>();
    const end = (): void => {
      if (this.#looks.get(key) === look) this.#looks.delete(key);
      cancel();
      ended.resolve();
    };
    const cancel = this.#clock.after(lookEveryMs, end);
    const look: Look = {
      heads: this.#goals.heads(tenant, region),
      end,
      news: async (signal) => {
        const stopped = Promise.withResolvers<void>();
        const stop = (): void => stopped.resolve();
        signal.addEventListener("abort", stop, { once: true });
        await Promise.race([ended.promise, stopped.promise]);
        signal.removeEventListener("abort", stop);
      },
    };
    look.heads.catch(end);
    this.#looks.set(key, look);
    return look;
  }
}

const keyOf = ({ tenant, machine }: Machine): string => JSON.stringify([tenant, machine]);

const knownOf = ({ tenant, machine, region, labels, reports, streams, seenAtMs }: Attached, nowMs: number): Known => ({
  tenant,
  machine,
  region,
  labels,
  isHeld: streams > 0,
  agoMs: streams > 0 ? 0 : nowMs - seenAtMs,
  reports: [...reports.values()].map(({ atMs, ...report }) => ({ ...report, agoMs: nowMs - atMs })),
});

type Look = {
  readonly heads: Promise<readonly Head[]>;
  /** Resolves when the store should be asked again. */
  news(signal: AbortSignal): Promise<void>;
  end(): void;
};
