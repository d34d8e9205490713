/** Builds a commit: a fresh clone, the command, its output packed, and entered for all releases that want the same. */
import { join } from "node:path";
import type { ActionIndex } from "#blobs/action-index.ts";
import type { Store } from "#blobs/store.ts";
import { leasesOf } from "#worker/holding.ts";
import { TaskOutput, type KeptAs } from "#worker/printed/task-output.ts";
import type { ProcessRequest } from "#worker/process.ts";
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

/** Of git, which says little. */
const quietBytesMax = 1024 * 1024;

export const buildRunner =
  (ports: BuildPorts) =>
  async (context: RunContext): Promise<RunOutcome> => {
    const given = JSON.parse(context.task.spec) as BuildSpec | BuildOfRelease;
    const spec = "service" in given ? buildOf(given) : given;
    const { build, sha, repository } = spec;
    const { place } = ports;
    await using scratch = await place.scratch(context.task.taskId);
    const source = join(scratch.path, "source");
    const steps = { context, place, scratch: scratch.path };
    // A URL or path that looks like a flag is not one.
    const cloning = ["git", "clone", "--quiet", "--no-checkout", "--", repository, source];
    const failed =
      (await gitStep(cloning, scratch.path, steps)) ??
      (await gitStep(["git", "checkout", "--quiet", "--detach", sha, "--"], source, steps));
    if (failed) return failed;
    const built = build && "run" in build ? await buildStep(commandOf(build.run), source, steps) : undefined;
    if (built && "kind" in built) return built;
    const packed = await packedOutcome(join(source, outputOf(build)), spec, context, ports);
    if (packed.kind !== "done") return packed;
    if (!("service" in given)) return withPrinted(packed, built, context);
    const sealing: SealSpec = { service: given.service, sha, ...(JSON.parse(packed.payload) as { packed: string }) };
    const sealed = await ports.seal({ ...context, task: { ...context.task, spec: JSON.stringify(sealing) } });
    return withPrinted(sealed, built, context);
  };

/** The result names what the build printed, for readers of its log (printed.ts). */
function withPrinted(outcome: RunOutcome, printed: KeptAs | undefined, { task }: RunContext): RunOutcome {
  if (outcome.kind !== "done" || !printed) return outcome;
  const { payload, outputs = [], digests = [], ...others } = outcome;
  return {
    ...others,
    payload: JSON.stringify({ ...(JSON.parse(payload) as object), output: printed.digest, token: task.token }),
    outputs: [...outputs, ...printed.outputs],
    digests: [...digests, printed.digest],
  };
}

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

type Steps = { readonly context: RunContext; readonly place: WorkPlace; readonly scratch: string };

/** Undefined if it ended well. */
async function gitStep(command: readonly string[], cwd: string, steps: Steps): Promise<RunOutcome | undefined> {
  const { name, exitCode, how, output } = await runStep(command, cwd, steps, { outputBytesMax: quietBytesMax });
  if (exitCode === 0) return undefined;
  return { kind: "failed", reason: "user-failure", message: `${name}: ${how}: ${output.tail(1_500).trim()}` };
}

/** What it prints is the log of the build, whole. */
async function buildStep(command: readonly string[], cwd: string, steps: Steps): Promise<RunOutcome | KeptAs> {
  const { context, place } = steps;
  const printed = new TaskOutput(context, place.live);
  const kept = { outputBytesMax: place.printedBytesMax, printing: printed.printing };
  const { name, exitCode, how, output } = await runStep(command, cwd, steps, kept);
  if (exitCode === 0) return await printed.kept(output);
  const message = `${name}: ${how}: ${output.tail(1_500).trim()}`;
  return await printed.failed("user-failure", message, { exitCode, output });
}

async function runStep(
  command: readonly string[],
  cwd: string,
  { context: { task, signal, leftMs, report }, place: { processes, env }, scratch }: Steps,
  kept: Pick<ProcessRequest, "outputBytesMax" | "printing">,
) {
  const name = command.join(" ").slice(0, 200);
  report({ step: 1, name, status: "started" });
  const { exitCode, killedBy, output } = await processes({
    command,
    cwd,
    env: { ...env, TMPDIR: scratch, GIT_TERMINAL_PROMPT: "0" },
    signal,
    leases: leasesOf(task, leftMs),
    ...kept,
  });
  report({ step: 1, name, status: exitCode === 0 ? "succeeded" : "failed" });
  return { name, exitCode, output, how: exitCode === undefined ? `killed by ${killedBy}` : `exit code ${exitCode}` };
}

const commandOf = (run: string | readonly string[]): readonly string[] =>
  typeof run === "string" ? ["/bin/sh", "-c", run] : run;
