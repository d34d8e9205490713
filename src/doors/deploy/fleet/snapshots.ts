/**
 * What a node knows of its machines, written down in cells of at most a thousand: at the end of each wave, whose
 * evidence names them, and every few minutes, so that a node that was restarted knows whom it should hear from.
 *
 * SN1 A machine that was there when its node stopped, and does not come back, is silent, not unknown.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { Store } from "#blobs/store.ts";
import { readIfThere, writeDurably } from "#doors/deploy/agent/durable-files.ts";
import type { FleetDesk } from "./desk.ts";
import type { Known } from "./tally.ts";
import { readWhole } from "./whole.ts";

export const cellMachinesMax = 1_000;
const writeEveryMs = 5 * 60_000;
const keptMs = 24 * 3_600_000;
const cellsFile = "cells.json";

export const SnapshotQuestion = z.object({ tenant: z.string(), regions: z.array(z.string()) });
export type SnapshotQuestion = z.output<typeof SnapshotQuestion>;

export type Cell = {
  readonly region: string;
  /** `<node>-<number>` */
  readonly cell: string;
  readonly machines: number;
  readonly digest: string;
};

const Report = z.object({
  service: z.string(),
  machine: z.string(),
  state: z.enum(["idle", "staging", "staged", "activating", "healthy", "failed", "reverted"]),
  running: z.string().nullable(),
  goalVersion: z.number(),
  why: z.string().optional(),
  agoMs: z.number(),
});
const CellDocument = z.object({
  format: z.literal(1),
  atMs: z.number(),
  machines: z.array(
    z.object({
      machine: z.string(),
      labels: z.array(z.string()),
      agoMs: z.number(),
      isHeld: z.boolean(),
      reports: z.array(Report),
    }),
  ),
});

export type SnapshotPorts = {
  readonly node: string;
  readonly desk: Pick<FleetDesk, "known" | "places" | "remember">;
  /** The door's folder on this node. */
  readonly folder: string;
  readonly store: Store;
  readonly clock: Clock;
  readonly warn: (why: string) => void;
};

/** Which cells this node wrote last. */
const Written = z.array(z.object({ tenant: z.string(), region: z.string(), digest: z.string() }));
type Written = z.output<typeof Written>;

export class Snapshots {
  readonly #ports: SnapshotPorts;

  constructor(ports: SnapshotPorts) {
    this.#ports = ports;
  }

  /** Until the signal. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, warn } = this.#ports;
    const warned = (doing: string) => (error: unknown) => warn(`${doing}: ${(error as Error).message}`);
    await this.#recall().catch(warned("recall machines"));
    while (!signal.aborted) {
      // Not all nodes at the same moment.
      await clock.sleep(writeEveryMs * (0.8 + 0.2 * Math.random()), signal).catch(() => undefined);
      if (signal.aborted) return;
      await this.#writeAll().catch(warned("write down machines"));
    }
  }

  async #writeAll(): Promise<void> {
    const { desk, folder } = this.#ports;
    const written: Written = [];
    for (const { tenant, region } of desk.places())
      for (const { digest } of await this.write({ tenant, regions: [region] }))
        written.push({ tenant, region, digest });
    await mkdir(folder, { recursive: true });
    await writeDurably(join(folder, cellsFile), JSON.stringify(written));
  }

  async write({ tenant, regions }: SnapshotQuestion): Promise<readonly Cell[]> {
    const written: Cell[] = [];
    for (const region of regions) {
      const all = this.#ports.desk.known().filter((one) => one.tenant === tenant && one.region === region);
      for (let from = 0; from < all.length; from += cellMachinesMax) {
        const machines = all.slice(from, from + cellMachinesMax);
        const cell = `${this.#ports.node}-${from / cellMachinesMax}`;
        const digest = await this.#writeCell(tenant, machines);
        written.push({ region, cell, machines: machines.length, digest });
      }
    }
    return written;
  }

  async #writeCell(tenant: string, machines: readonly Known[]): Promise<string> {
    const { clock, store } = this.#ports;
    const document = {
      format: 1,
      atMs: clock.wallMs(),
      machines: machines.map(({ machine, labels, agoMs, isHeld, reports }) => ({
        machine,
        labels: [...labels],
        agoMs,
        isHeld,
        reports: [...reports],
      })),
    } satisfies z.input<typeof CellDocument>;
    const bytes = Buffer.from(JSON.stringify(document));
    const digest = sha256Digest(bytes);
    const { blobs } = store.forTenant(tenant);
    await blobs.write(digest, bytes);
    await blobs.pin([digest], keptMs);
    return digest;
  }

  /** SN1 */
  async #recall(): Promise<void> {
    const { store, clock, desk, folder } = this.#ports;
    const text = await readIfThere(join(folder, cellsFile));
    for (const { tenant, region, digest } of text === undefined ? [] : Written.parse(JSON.parse(text))) {
      const document = CellDocument.parse(JSON.parse(await readWhole(store.forTenant(tenant).blobs, digest)));
      const sinceMs = Math.max(0, clock.wallMs() - document.atMs);
      for (const one of document.machines) desk.remember({ ...one, tenant, region }, sinceMs);
    }
  }
}
