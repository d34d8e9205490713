/** Builds a commit: a fresh clone, the command, its output packed, and entered for all releases that want the same. */
import { join } from "node:path";
import type { ActionIndex } from "#blobs/action-index.ts";
import type { Store } from "#blobs/store.ts";
import { leasesOf } from "#worker/holding.ts";
import type { RunContext, Runner, RunOutcome } from "#worker/runner.ts";
import type { WorkPlace } from "#door/ports.ts";
import { distinctSegments } from "#doors/deploy/manifest/manifest.ts";
import type { GoalStore } from "#doors/deploy/fleet/goals.ts";
import {
  buildKey,
  buildOf,
  outputOf,
  type BuildOfRelease,
  type BuildSpec,
  type Packed,
  type SealSpec,
} from "#doors/deploy/plan.ts";
import { builtSpace } from "./join-build.ts";
import { keptMs } from "./seal.ts";
import { packWithUnits } from "./pack.ts";

export type BuildPorts = {
  readonly place: WorkPlace;
  readonly store: Store;
  readonly goals: GoalStore;
  readonly index: ActionIndex;
  /** What follows in the same task where the build is a stage of its release. */
  readonly seal: Runner;
};

const outputBytesMax = 1024 * 1024;

export const buildRunner =
  (ports: BuildPorts) =>
  async (context: RunContext): Promise<RunOutcome> => {
    const given = JSON.parse(context.task.spec) as BuildSpec | BuildOfRelease;
    const spec = "service" in given ? buildOf(given) : given;
    const { build, sha, repository } = spec;
    const { place } = ports;
    await using scratch = await place.scratch(context.task.taskId);
    const source = join(scratch.path, "source");
    const run = (command: readonly string[], cwd: string) => runStep(command, cwd, scratch.path, context, place);
    const failed =
      // A URL or path that looks like a flag is not one.
      (await run(["git", "clone", "--quiet", "--no-checkout", "--", repository, source], scratch.path)) ??
      (await run(["git", "checkout", "--quiet", "--detach", sha, "--"], source)) ??
      (build && "run" in build ? await run(commandOf(build.run), source) : undefined);
    if (failed) return failed;
    const packed = await packedOutcome(join(source, outputOf(build)), spec, context, ports);
    if (packed.kind !== "done" || !("service" in given)) return packed;
    const sealing: SealSpec = { service: given.service, sha, ...(JSON.parse(packed.payload) as { packed: string }) };
    return await ports.seal({ ...context, task: { ...context.task, spec: JSON.stringify(sealing) } });
  };

/** A folder as what the build made, entered for all releases that want the same. */
export async function packedOutcome(
  folder: string,
  spec: BuildSpec,
  { task: { tenant, jobId }, clock }: RunContext,
  { store, goals, index }: Pick<BuildPorts, "store" | "goals" | "index">,
): Promise<RunOutcome> {
  const { blobs } = store.forTenant(tenant);
  const packed = await packWithUnits(folder, blobs);
  const content: Packed = { ...packed, builder: jobId };
  const digest = await goals.write(tenant, JSON.stringify(content));
  const segments = distinctSegments(packed);
  await blobs.pin(segments, keptMs);
  const entry = { digest, principal: "deploy", atMs: clock.wallMs() };
  await index.put({ tenant, space: builtSpace, name: buildKey(spec) }, entry);
  return { kind: "done", payload: JSON.stringify({ packed: digest }), digests: [digest, ...segments] };
}

async function runStep(
  command: readonly string[],
  cwd: string,
  scratch: string,
  { task, signal, leftMs, report }: RunContext,
  { processes, env }: WorkPlace,
): Promise<RunOutcome | undefined> {
  const name = command.join(" ").slice(0, 200);
  report({ step: 1, name, status: "started" });
  const { exitCode, killedBy, output } = await processes({
    command,
    cwd,
    env: { ...env, TMPDIR: scratch, GIT_TERMINAL_PROMPT: "0" },
    outputBytesMax,
    signal,
    leases: leasesOf(task, leftMs),
  });
  report({ step: 1, name, status: exitCode === 0 ? "succeeded" : "failed" });
  if (exitCode === 0) return undefined;
  const how = exitCode === undefined ? `killed by ${killedBy}` : `exit code ${exitCode}`;
  return { kind: "failed", reason: "user-failure", message: `${name}: ${how}: ${output.tail(1_500).trim()}` };
}

const commandOf = (run: string | readonly string[]): readonly string[] =>
  typeof run === "string" ? ["/bin/sh", "-c", run] : run;
