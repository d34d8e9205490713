/** Builds a commit: a fresh clone, the service's command, its output packed and signed. The same SHA packs the same. */
import { join } from "node:path";
import type { Store } from "#blobs/store.ts";
import { leasesOf } from "#worker/holding.ts";
import type { RunContext, RunOutcome } from "#worker/runner.ts";
import type { WorkPlace } from "#door/ports.ts";
import { manifestSizeBytes, manifestText, parseManifest } from "#doors/deploy/manifest/manifest.ts";
import { runSpecOf } from "#doors/deploy/manifest/run-spec.ts";
import type { Signer } from "#doors/deploy/signing/signing.ts";
import type { GoalStore } from "#doors/deploy/fleet/goals.ts";
import type { BuildResult, BuildSpec } from "#doors/deploy/plan.ts";
import { packWithUnits } from "./pack.ts";

export type BuildPorts = {
  readonly place: WorkPlace;
  readonly store: Store;
  readonly goals: GoalStore;
  readonly signer: () => Promise<Signer>;
};

const outputBytesMax = 1024 * 1024;
const keptMs = 30 * 24 * 3_600_000;

export const buildRunner =
  ({ place, store, goals, signer }: BuildPorts) =>
  async (context: RunContext): Promise<RunOutcome> => {
    const { service, sha, repository } = JSON.parse(context.task.spec) as BuildSpec;
    const { tenant } = context.task;
    const { blobs } = store.forTenant(tenant);
    await using scratch = await place.scratch(context.task.taskId);
    const source = join(scratch.path, "source");
    const run = (command: readonly string[], cwd: string) => runStep(command, cwd, scratch.path, context, place);
    const failed =
      // A URL or path that looks like a flag is not one.
      (await run(["git", "clone", "--quiet", "--no-checkout", "--", repository, source], scratch.path)) ??
      (await run(["git", "checkout", "--quiet", "--detach", sha, "--"], source)) ??
      (service.build && (await run(commandOf(service.build.run), source)));
    if (failed) return failed;
    const packed = await packWithUnits(join(source, service.build?.output ?? "."), blobs);
    const text = manifestText({
      format: 1,
      service: service.service,
      sha,
      builder: context.task.jobId,
      run: runSpecOf(service),
      ...packed,
    });
    const manifest = parseManifest(text); // what agents would refuse must not be signed
    const digest = await goals.write(tenant, JSON.stringify((await signer()).sign("manifest", text)));
    const segments = [...new Set(packed.files.flatMap((file) => file.segments))];
    await blobs.pin(segments, keptMs);
    const result: BuildResult = { manifest: digest, sizeBytes: manifestSizeBytes(manifest) };
    return { kind: "done", payload: JSON.stringify(result), digests: [digest, ...segments] };
  };

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
