/** Time, CPU and percentiles of one stretch of work. */
import { readdirSync, readFileSync } from "node:fs";
import pg from "pg";
import type { PostgresServer } from "#testing/postgres.ts";

/** CPU used by a whole PostgreSQL server so far, in microseconds; undefined if it cannot be measured. */
export type ServerCpu = () => number | undefined;

const clockTicks = 100;

/** Counts the server, its helpers and its sessions, those that have ended included. */
export async function serverCpu(server: Pick<PostgresServer, "url">): Promise<ServerCpu> {
  const client = new pg.Client(server.url());
  await client.connect();
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  const parent = parentOf(rows[0]?.pid ?? 0);
  await client.end();
  return () => {
    const own = statOf(parent);
    if (!own) return undefined;
    let ticks = own.own + own.ended;
    for (const name of readdirSync("/proc")) {
      const stat = /^\d+$/.test(name) ? statOf(Number(name)) : undefined;
      if (stat?.parent === parent) ticks += stat.own;
    }
    return (ticks * 1_000_000) / clockTicks;
  };
}

/** CPU used by one process so far, all its threads, in microseconds; NaN if it cannot be measured. */
export function processCpuUs(pid: number): number {
  const stat = statOf(pid);
  return stat ? (stat.own * 1_000_000) / clockTicks : Number.NaN;
}

/** CPU of a process, all its threads, and of its children that have ended and been waited for. */
export function processTimes(
  pid: number,
): { readonly parent: number; readonly ownUs: number; readonly endedUs: number } | undefined {
  const stat = statOf(pid);
  return (
    stat && {
      parent: stat.parent,
      ownUs: (stat.own * 1_000_000) / clockTicks,
      endedUs: (stat.ended * 1_000_000) / clockTicks,
    }
  );
}

/** CPU of a process and of all that it started, also of those that have ended and were waited for. */
export function treeCpuUs(pid: number): number {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc")) {
    const parent = /^\d+$/.test(name) ? statOf(Number(name))?.parent : undefined;
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  let ticks = 0;
  const left = [pid];
  for (let one = left.pop(); one !== undefined; one = left.pop()) {
    const { own = 0, ended = 0 } = statOf(one) ?? {};
    ticks += own + ended;
    left.push(...(children.get(one) ?? []));
  }
  return (ticks * 1_000_000) / clockTicks;
}

/** Memory that a process has in use; NaN if it cannot be measured. */
export function processMb(pid: number): number {
  try {
    const kib = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return (Number(kib) * 1024) / 1e6;
  } catch {
    return Number.NaN;
  }
}

const parentOf = (pid: number): number => statOf(pid)?.parent ?? 0;

function statOf(pid: number): { readonly parent: number; readonly own: number; readonly ended: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    const at = (i: number): number => fields[i] ?? 0;
    return { parent: at(1), own: at(11) + at(12), ended: at(13) + at(14) };
  } catch {
    return undefined; // not Linux, or it has ended in the meantime
  }
}

export type Stretch = {
  readonly count: number;
  readonly seconds: number;
  readonly perSecond: number;
  /** CPU of this process, all its threads, and the load that it generates itself. */
  readonly cpuUs: number;
  readonly serverCpuUs: number | undefined;
};

/** Runs it and returns the time and CPU for each of the `count` things; `run` returns the count. */
export async function stretch(run: () => Promise<number>, server?: ServerCpu): Promise<Stretch> {
  const cpuBefore = process.cpuUsage();
  const serverBefore = server?.();
  const startedMono = performance.now();
  const count = await run();
  const seconds = (performance.now() - startedMono) / 1_000;
  const cpu = process.cpuUsage(cpuBefore);
  const serverAfter = server?.();
  const serverCpuUs =
    serverBefore === undefined || serverAfter === undefined ? undefined : (serverAfter - serverBefore) / count;
  return { count, seconds, perSecond: count / seconds, cpuUs: (cpu.user + cpu.system) / count, serverCpuUs };
}

export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export const median = (values: readonly number[]): number => percentile(values, 0.5);

export type LoopLimits = { readonly atOnce: number; readonly forMs: number; readonly countMax?: number };

/** Repeats `run`, with limited concurrency, until the time is up; returns the sum of its results. */
export async function loops(limits: LoopLimits, run: (lane: number) => Promise<number>): Promise<number> {
  const { atOnce, forMs, countMax = Number.POSITIVE_INFINITY } = limits;
  const untilMono = performance.now() + forMs;
  let count = 0;
  const lane = async (no: number): Promise<void> => {
    while (performance.now() < untilMono && count < countMax) {
      const more = await run(no);
      count += more; // not in one statement: the sum would be read before the wait
    }
  };
  await Promise.all(Array.from({ length: atOnce }, (_, no) => lane(no)));
  return count;
}
