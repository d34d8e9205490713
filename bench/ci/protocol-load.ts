/** Runners, in a process of their own: they hold jobs and report steps that begin and end, by the work protocol. */
import { systemClock } from "#door/system-clock.ts";
import type { CommandOf } from "#kernel/model/command.ts";
import type { Grant, Step } from "#kernel/model/model.ts";
import { createGrpcTransport } from "#shard/transport/grpc-transport.ts";
import { Asker } from "#bench/kernel/asker.ts";
import { reserveTasks, submitJob } from "#bench/kernel/work.ts";
import { answering } from "#bench/load-process.ts";
import { loops } from "#bench/measure.ts";

export type ReportWork = {
  readonly kind: "report";
  readonly address: string;
  readonly token: string;
  readonly shards: number;
  /** In each shard, all of one runner. */
  readonly jobs: number;
  /** Steps that begin or end, in one report. */
  readonly steps: number;
  /** Reports of different jobs in one request. */
  readonly together: number;
  readonly forMs: number;
};

export type Reported = { readonly transitions: number; readonly seconds: number; readonly cpuUs: number };

const never = new AbortController().signal;
const stepsOfJob = 20;

async function perform(work: ReportWork): Promise<Reported> {
  const { address, token, shards, forMs } = work;
  const transport = createGrpcTransport({ clock: systemClock, metadata: [["authorization", `Bearer ${token}`]] });
  const asker = new Asker({ request: (asked) => transport.request(address, asked, never), digests: [], reports: [] });
  const executor = `runner-${process.pid}-${Math.random()}`;
  const lanes = await Promise.all(
    Array.from({ length: shards }, async (_, shard) => {
      await submitJob(asker, shard, work.jobs);
      const held = await reserveTasks(asker, shard, { executor, count: work.jobs });
      return batchesOf(held, work.together).map((grants) => ({ shard, grants, turns: grants.map(() => 0) }));
    }),
  );
  const all = lanes.flat();
  const [beganMs, cpu] = [performance.now(), process.cpuUsage()];
  const transitions = await loops({ atOnce: all.length, forMs }, async (no) => {
    const lane = all[no];
    if (!lane) return 0;
    const { shard, grants, turns } = lane;
    const commands = grants.map(({ task, token: claim }, at): CommandOf<"report"> => {
      turns[at] = (turns[at] ?? 0) + work.steps;
      return { kind: "report", executor, task, token: claim, steps: stepsAt(turns[at] ?? 0, work.steps) };
    });
    const [one] = commands;
    if (commands.length === 1 && one) await asker.ask<"report">(shard, one);
    else await asker.askMany<"report">(shard, commands);
    return commands.length * work.steps;
  });
  const { user, system } = process.cpuUsage(cpu);
  const seconds = (performance.now() - beganMs) / 1_000;
  await transport.close();
  return { transitions, seconds, cpuUs: user + system };
}

const batchesOf = (grants: readonly Grant[], together: number): readonly (readonly Grant[])[] =>
  Array.from({ length: Math.ceil(grants.length / together) }, (_, at) =>
    grants.slice(at * together, (at + 1) * together),
  );

/** A step begins, and then it ends. */
const stepsAt = (turn: number, count: number): readonly Step[] =>
  Array.from({ length: count }, (_, n): Step => {
    const at = (turn + n) % (2 * stepsOfJob);
    return { step: at >> 1, name: `step ${at >> 1}`, status: (at & 1) === 0 ? "started" : "succeeded" };
  });

answering(perform);
