/** How a machine runs a release. Part of the signed manifest: a new command or probe is a release like any other. */
import { z } from "zod";
import type { ServiceFile } from "#doors/deploy/service/service-file.ts";

const timeMsMax = 24 * 3_600_000;
const Port = z.int().min(1).max(65_535);
const Words = z.array(z.string().max(10_000)).min(1).max(1_000);

const ProbeSpec = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("http"), port: Port, path: z.string().max(1_001) }),
  z.strictObject({ kind: z.literal("tcp"), port: Port }),
  z.strictObject({ kind: z.literal("exec"), command: Words }),
]);
export type ProbeSpec = z.output<typeof ProbeSpec>;

export const RunSpec = z.strictObject({
  command: Words,
  env: z.record(z.string().max(200), z.string().max(100_000)),
  /** Null: a process that stays alive for `withinMs` is healthy. */
  probe: ProbeSpec.nullable(),
  withinMs: z.int().min(1).max(timeMsMax),
  everyMs: z.int().min(10).max(timeMsMax),
  drainMs: z.int().min(0).max(timeMsMax),
  keepVersions: z.int().min(2).max(100),
  diskBytesMax: z.int().min(1),
});
export type RunSpec = z.output<typeof RunSpec>;

/** How long a process without a probe must stay alive. */
const aliveMs = 2_000;

export function runSpecOf({ run, agent }: Pick<ServiceFile, "run" | "agent">): RunSpec {
  const { exec, env, drain, probe } = run;
  return {
    command: wordsOf(exec),
    env,
    probe: probe ? probeOf(probe) : null,
    withinMs: probe?.within ?? aliveMs,
    everyMs: Math.max(10, probe?.every ?? 100),
    drainMs: drain,
    keepVersions: agent.keep,
    diskBytesMax: agent.disk,
  };
}

function probeOf({ http, tcp, exec }: NonNullable<ServiceFile["run"]["probe"]>): ProbeSpec {
  if (http !== undefined) {
    const slash = http.indexOf("/");
    return { kind: "http", port: Number(http.slice(1, slash)), path: http.slice(slash) };
  }
  if (tcp !== undefined) return { kind: "tcp", port: Number(tcp.slice(1)) };
  return { kind: "exec", command: wordsOf(exec ?? []) };
}

const wordsOf = (command: string | readonly string[]): string[] =>
  typeof command === "string" ? ["/bin/sh", "-c", command] : [...command];
