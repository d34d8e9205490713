/** The outcome of an action of a build, with its outputs. */
import { isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { TaskView } from "#kernel/read/query.ts";
import type {
  ActionResult,
  Digest as WireDigest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { ActionReport, ActionStatus, OutputMade } from "#wire/generated/millrace/build/v1/builds.ts";
import { readAnswer, readOutcome, type AnswerAt } from "#doors/build/run/outcome.ts";
import { readFailure } from "./failure-text.ts";

/** Without outputs if it made none, or if its answer is no longer kept. */
export async function reportOf(
  status: ActionStatus,
  task: TaskView | undefined,
  blobs: BlobStore,
): Promise<ActionReport> {
  const failure = task?.lastFailure && readFailure(task.lastFailure.message);
  const answer = readOutcome(task?.result) ?? failure?.answer;
  const result = answer && (await resultIn(answer, blobs));
  if (!result) return { status, exitCode: 0, outputs: [], stdout: "", stderr: "" };
  const { exitCode, stdoutDigest, stderrDigest } = result;
  return { status, exitCode, outputs: outputsOf(result), stdout: textOf(stdoutDigest), stderr: textOf(stderrDigest) };
}

async function resultIn(answer: AnswerAt, blobs: BlobStore): Promise<ActionResult | undefined> {
  try {
    return (await readAnswer(answer, blobs)).result;
  } catch (error) {
    if (isFault(error, "not-found")) return undefined;
    throw error;
  }
}

const outputsOf = (result: ActionResult): readonly OutputMade[] => [
  ...result.outputFiles.map(({ path, isExecutable, digest }) =>
    made(path, { kind: "blob", value: textOf(digest) }, isExecutable),
  ),
  ...result.outputDirectories.map(({ path, treeDigest, rootDirectoryDigest }) =>
    made(path, { kind: "tree", value: textOf(treeDigest ?? rootDirectoryDigest) }),
  ),
  ...result.outputSymlinks.map(({ path, target }) => made(path, { kind: "link", value: target })),
];

const made = (path: string, what: OutputMade["made"], isExecutable = false): OutputMade => ({
  path,
  isExecutable,
  made: what,
});

const textOf = (digest: WireDigest | undefined): string => (digest ? `${digest.hash}/${digest.sizeBytes}` : "");
