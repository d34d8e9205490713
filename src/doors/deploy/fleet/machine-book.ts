/**
 * Which machine is which. A token with the role `agent` may serve many machines; each of them makes a key of its own at
 * its first start, and its name belongs to that key from its first call on.
 *
 * MB1 A name that has a key is spoken for only with that key, on every node, until a person forgets the machine.
 * MB2 A machine that calls more often than any honest one is refused; the others do not notice.
 */
import { hash, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { Problem } from "#http/problem.ts";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { Bucket } from "#swarm/bucket.ts";

const Machine = z.object({ sha256: z.string(), by: z.string(), atMs: z.number() });
const limits = { countMax: 300_000, bytesMax: 300_000 * 1_000 };

/** An agent reports each of at most 100 services every five seconds, and each change. */
const callsPerSecondMax = 50;
const burstMs = 10_000;
/** For so long a node does not ask again which key a name has: a machine that was forgotten may come back after it. */
const rememberedMs = 5_000;
const rememberedMax = 20_000;

export type BookPorts = {
  readonly records: Records;
  readonly clock: Pick<Clock, "monotonicMs" | "wallMs">;
  readonly refused: (machine: string, tenant: string, why: string) => void;
};

export type MachineCaller = {
  readonly tenant: string;
  readonly machine: string;
  /** The name of the principal, for people. */
  readonly by: string;
  readonly key: string | null;
};

type Known = { readonly sha256: string | undefined; readonly atMs: number; readonly bucket: Bucket };

export class MachineBook {
  readonly #ports: BookPorts;
  readonly #machines;
  /** The oldest first. */
  readonly #known = new Map<string, Known>();
  refusals = 0;

  constructor(ports: BookPorts) {
    this.#ports = ports;
    this.#machines = recordsOf(ports.records, { kind: "deploy.machine", schema: Machine, limits });
  }

  /** Throws a Problem unless the caller may speak for the machine (MB1) and does not call too often (MB2). */
  async check(caller: MachineCaller): Promise<void> {
    const nowMs = this.#ports.clock.monotonicMs();
    const { bucket } = this.#known.get(nameOf(caller)) ?? this.#remember(caller, undefined, -Infinity, nowMs);
    const waitMs = bucket.waitMs(nowMs);
    if (waitMs > 0) {
      const headers = { "retry-after": String(Math.ceil(waitMs / 1_000)) };
      throw this.#refuse(caller, new Problem(429, `machine ${caller.machine} calls too often`, { headers }));
    }
    bucket.take(1);
    const expected = await this.#keyOf(caller, nowMs);
    if (expected === undefined || isKey(caller.key, expected)) return;
    const why = `the name ${caller.machine} belongs to another machine's key`;
    const help = "if the machine was set up anew, forget the old one: millrace deploy forget";
    throw this.#refuse(caller, new Problem(403, `${why}; ${help} ${caller.machine}`));
  }

  /** The next machine that comes with this name, and a key, has it. */
  async forget(tenant: string, machine: string): Promise<boolean> {
    this.#known.delete(nameOf({ tenant, machine }));
    return await this.#machines.remove(tenant, machine);
  }

  async #keyOf(caller: MachineCaller, nowMs: number): Promise<string | undefined> {
    const { tenant, machine, by, key } = caller;
    const known = this.#known.get(nameOf(caller));
    if (known?.sha256 !== undefined && nowMs - known.atMs < rememberedMs) return known.sha256;
    const found = await this.#machines.read(tenant, machine);
    const first = { sha256: key === null ? "" : sha256(key), by, atMs: this.#ports.clock.wallMs() };
    const record = found ?? (key === null ? undefined : (await this.#machines.create(tenant, machine, first)).record);
    this.#remember(caller, record?.value.sha256, nowMs, nowMs);
    return record?.value.sha256;
  }

  #remember(caller: MachineCaller, known: string | undefined, atMs: number, nowMs: number): Known {
    const name = nameOf(caller);
    const bucket = this.#known.get(name)?.bucket ?? new Bucket(callsPerSecondMax, burstMs, nowMs - burstMs);
    const next = { sha256: known, atMs, bucket };
    this.#known.delete(name);
    this.#known.set(name, next);
    const [oldest] = this.#known.keys();
    if (this.#known.size > rememberedMax && oldest !== undefined) this.#known.delete(oldest);
    return next;
  }

  #refuse({ machine, tenant }: MachineCaller, problem: Problem): Problem {
    this.refusals += 1;
    this.#ports.refused(machine, tenant, problem.message);
    return problem;
  }
}

const nameOf = ({ tenant, machine }: Pick<MachineCaller, "tenant" | "machine">): string =>
  JSON.stringify([tenant, machine]);

const sha256 = (key: string): string => hash("sha256", key);

const isKey = (key: string | null, expected: string): boolean =>
  key !== null && timingSafeEqual(Buffer.from(sha256(key)), Buffer.from(expected));
