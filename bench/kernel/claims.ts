/** A hundred thousand claims held by a thousand executors: what it costs to keep them. */
import { systemClock } from "#door/system-clock.ts";
import type { Report } from "#bench/report.ts";
import { Rig } from "./rig.ts";
import { reserveTasks, submitJob } from "./work.ts";

export type ClaimOptions = { readonly executors: number; readonly claimsEach: number; readonly overMs: number };

const periodMs = 30_000;

export async function holdClaims(report: Report, { executors, claimsEach, overMs }: ClaimOptions): Promise<void> {
  await using rig = await Rig.start({ store: { kind: "sqlite" } });
  const names = Array.from({ length: executors }, (_, i) => `holder-${i}`);
  const held = new Map<string, readonly { readonly task: number; readonly token: number }[]>();
  for (let from = 0; from < executors; from += 100)
    await Promise.all(
      names.slice(from, from + 100).map(async (executor) => {
        await submitJob(rig, 0, claimsEach);
        held.set(executor, await reserveTasks(rig, 0, { executor, count: claimsEach }));
      }),
    );
  const claims = [...held.values()].reduce((sum, grants) => sum + grants.length, 0);
  const idleUs = await cpuOver(500, () => systemClock.sleep(500));
  const logBefore = { ...rig.log };
  const latenciesMs: number[] = [];
  const usedUs = await cpuOver(overMs, async () => {
    const startedMono = performance.now();
    const answers: Promise<void>[] = [];
    for (const [i, executor] of names.entries()) {
      const waitMs = startedMono + (overMs * i) / executors - performance.now();
      if (waitMs > 1) await systemClock.sleep(waitMs);
      answers.push(renew(rig, executor, held.get(executor) ?? [], latenciesMs));
    }
    await Promise.all(answers);
  });
  const roundUs = Math.max(0, usedUs - idleUs * (overMs / 500));
  const share = roundUs / (periodMs * 1_000);
  const bytes = rig.log.bytes - logBefore.bytes;
  const title = `${claims.toLocaleString("en-US")} claims of ${executors} executors, all renewed once in ${overMs / 1_000} s`;
  report.table(
    `${title} (as CPU of one core when renewed every 30 s)`,
    ["", "CPU us a claim", "share of a core", "log bytes", "slowest ms"],
    [["renewals", roundUs / claims, `${(share * 100).toFixed(2)}%`, bytes, Math.max(...latenciesMs)]],
  );
  report.figure("renewal_core_share", share);
  report.figure("renewal_log_bytes", bytes);
}

async function renew(
  rig: Rig,
  executor: string,
  claims: readonly { readonly task: number; readonly token: number }[],
  latenciesMs: number[],
): Promise<void> {
  const startedMono = performance.now();
  const named = claims.map(({ task, token }) => ({ task, token }));
  const { held, lost } = await rig.ask<"renew">(0, { kind: "renew", executor, claims: named });
  if (held.length !== claims.length || lost.length > 0) throw new Error(`${executor} lost ${lost.length} claims`);
  latenciesMs.push(performance.now() - startedMono);
}

async function cpuOver(_ms: number, run: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await run();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
