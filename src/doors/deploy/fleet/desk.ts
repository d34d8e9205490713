/**
 * The machines that are attached to this node: where they are, what they report, and the stream that sends them goals.
 * Soft: it is rebuilt from what machines announce when they attach again, to this node or to another one.
 */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { MachineReport } from "#doors/deploy/health/judge.ts";
import type { Signed } from "#doors/deploy/signing/signing.ts";
import type { GoalStore, Head } from "./goals.ts";

export type Machine = {
  readonly tenant: string;
  readonly machine: string;
  readonly region: string;
  readonly labels: readonly string[];
};

export type ServiceReport = Omit<MachineReport, "state" | "atMs"> & {
  readonly state: MachineReport["state"] | "idle";
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
const pollMs = 500;
const forgottenAfterMs = 10 * 60_000;

export class FleetDesk {
  readonly #goals: GoalStore;
  readonly #clock: Clock;
  readonly #machines = new Map<string, Attached>();
  readonly #wakers = new Set<() => void>();

  constructor(goals: GoalStore, clock: Clock) {
    this.#goals = goals;
    this.#clock = clock;
  }

  /** A machine's goals: the newest of each service whose targets it matches, and every newer one until it leaves. */
  async *attach(machine: Machine, signal: AbortSignal): AsyncGenerator<Signed> {
    const attached = this.#attached(machine);
    attached.streams += 1;
    const sent = new Map<string, number>();
    try {
      while (!signal.aborted) {
        attached.seenAtMs = this.#clock.monotonicMs();
        for (const head of await this.#goals.heads(machine.tenant, machine.region)) {
          const { service, version, labels } = head.goal;
          if (!labels.every((label) => machine.labels.includes(label))) continue;
          if ((sent.get(service) ?? 0) >= version) continue;
          sent.set(service, version);
          yield head.signed;
        }
        await this.#news(signal);
      }
    } finally {
      attached.streams -= 1;
    }
  }

  report(machine: Machine, report: ServiceReport): void {
    const attached = this.#attached(machine);
    attached.seenAtMs = this.#clock.monotonicMs();
    if (!attached.reports.has(report.service) && attached.reports.size >= servicesPerMachineMax)
      throw new Fault("exhausted", "report", { machine: machine.machine, servicesMax: servicesPerMachineMax });
    attached.reports.set(report.service, { ...report, atMs: attached.seenAtMs });
  }

  /** A goal was written here: machines of this node need not wait for the next look. */
  wake(_head: Head): void {
    for (const wake of this.#wakers) wake();
  }

  seen(): readonly Seen[] {
    const nowMs = this.#clock.monotonicMs();
    for (const [name, { streams, seenAtMs }] of this.#machines)
      if (streams === 0 && nowMs - seenAtMs > forgottenAfterMs) this.#machines.delete(name);
    return [...this.#machines.values()].map(({ tenant, machine, region, labels, reports }) => ({
      tenant,
      machine,
      region,
      labels,
      reports: [...reports.values()].map(({ atMs, ...report }) => ({ ...report, agoMs: nowMs - atMs })),
    }));
  }

  #attached(machine: Machine): Attached {
    // One tenant's machine cannot take another's place, whatever it calls itself.
    const key = JSON.stringify([machine.tenant, machine.machine]);
    const known = this.#machines.get(key);
    if (known && known.region === machine.region && known.labels.join() === machine.labels.join()) return known;
    if (!known && this.#machines.size >= machinesMax)
      throw new Fault("exhausted", "attach machine", { machinesMax, wants: "another node of the region" });
    const attached = { ...machine, reports: new Map(), streams: 0, seenAtMs: this.#clock.monotonicMs() };
    this.#machines.set(key, attached);
    return attached;
  }

  /** Goals of other nodes are found by polling: the store sends no news. */
  async #news(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wakers.add(resolve);
    const cancel = this.#clock.after(pollMs, resolve);
    signal.addEventListener("abort", () => resolve(), { once: true });
    await promise;
    cancel();
    this.#wakers.delete(resolve);
  }
}
