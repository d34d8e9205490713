/** Starts a run: a workflow of a commit, for an event, becomes a job of the kernel. */
import { createHash, randomUUID } from "node:crypto";
import { Fault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { CallTraces } from "#door/ports.ts";
import type { Order, Submitted, WorkClient } from "#shard/client/client.ts";
import type { SourceFile } from "#doors/ci/workflow/compile/file.ts";
import type { OnRunnerLoss } from "#doors/ci/workflow/compile/millrace.ts";
import { type Dictionary, plainOf } from "#doors/ci/workflow/expression/value.ts";
import { TemplateFault } from "#doors/ci/workflow/plan/template.ts";
import { planRun, sandboxLabel } from "#doors/ci/plan.ts";
import { type Queue, queueLabels } from "#doors/ci/queues.ts";
import type { Commit } from "#sources/copies.ts";
import { type Foreign, withCalled } from "#doors/ci/runs/trigger/called-files.ts";
import { type GithubFacts, githubOf, type RunEvent } from "./github-context.ts";
import { type PullOf, type RunAbout, type RunRecord, storeRun } from "./record.ts";
import { titleOf } from "./title.ts";
import type { Variables } from "./variables.ts";

export type StartPorts = {
  readonly client: Pick<WorkClient, "submit">;
  readonly blobs: BlobStore;
  /** Each run is one trace; left out: none is recorded. */
  readonly traces?: CallTraces | undefined;
  readonly variables: Pick<Variables, "of">;
  /** Runs that go to certain workers only; left out: none. */
  readonly queues?: readonly Queue[];
  /** What the cluster says about a lost runner: a part of what jobs are, so re-runs must know it to reuse results. */
  readonly onRunnerLoss?: (tenant: string, requires: readonly string[]) => OnRunnerLoss;
  /** How long artifacts of runs stay. */
  readonly retentionDays: number;
};

export type Start = {
  readonly tenant: string;
  readonly repository: string;
  readonly commit: Commit;
  /** All workflows of the commit. */
  readonly files: readonly SourceFile[];
  /** Where workflows of other repositories come from. */
  readonly foreign: Foreign;
  readonly path: string;
  /** Where the files come from, if not from the repository itself. */
  readonly from?: GithubFacts["from"];
  readonly event: RunEvent;
  readonly inputs: Dictionary;
  readonly actor: string;
  /** What operators start may run as the node itself, where there is no sandbox. */
  readonly isTrusted: boolean;
  readonly isFork?: boolean;
  readonly waitsFor?: RunRecord["waitsFor"];
  readonly pull?: PullOf;
  readonly chain?: number;
  /** The same key never makes a second run. */
  readonly key?: string;
  /** Who is told when the run has ended. */
  readonly whenEnded?: Order["whenEnded"] | undefined;
  /** What a repeated request must agree in. */
  readonly payload?: string;
};

export async function startRun(ports: StartPorts, start: Start): Promise<Submitted> {
  const { client, blobs, variables, traces, queues = [], retentionDays } = ports;
  const { tenant, repository, commit, event, key, payload } = start;
  const requires = [...(start.isTrusted ? [] : [sandboxLabel]), ...queueLabels(queues, { tenant, repository })];
  const file = start.files.find((one) => one.path === start.path);
  if (!file) throw new Fault("not-found", "find the workflow", { workflow: start.path });
  const own = new Map(start.files.map((one) => [one.path, one]));
  const { called, workflow } = await withCalled(file, own, start.foreign);
  const github = githubOf(event, { ...start, workflow, retentionDays });
  const record: RunRecord = {
    file,
    ...(called.length > 0 && { called }),
    ...(start.foreign.commits.size > 0 && { commits: Object.fromEntries(start.foreign.commits) }),
    github: plainOf(github),
    vars: await variables.of(tenant, repository),
    inputs: plainOf(start.inputs),
    source: { repository, sha: commit.sha, ...(start.pull && { pull: start.pull }) },
    ...(start.isFork && { isFork: true }),
    ...(start.waitsFor && { waitsFor: start.waitsFor }),
    ...(start.chain !== undefined && { chain: start.chain }),
    ...(requires.length > 0 && { requires }),
  };
  const about: RunAbout = {
    title: evaluated("name the run", () => titleOf(workflow, record)),
    workflow: workflow.name ?? workflow.path,
    path: shownPath(start),
    repository,
    event: event.name,
    ref: commit.ref,
    sha: commit.sha,
    ...(start.pull && { head: start.pull.head }),
    actor: start.actor,
  };
  const stored = await storeRun(blobs, record, about);
  const plan = evaluated("plan the run", () =>
    planRun(record, stored, {
      tenant,
      shardKey: `${tenant}/ci ${repository}`,
      unique: key ?? randomUUID(),
      ...(key !== undefined && { key }),
      ...(payload !== undefined && { payloadHash: createHash("sha256").update(payload).digest("hex") }),
    }),
  );
  const { whenEnded } = start;
  return await tracedSubmit(client, { ...plan, ...(whenEnded && { whenEnded }) }, traces);
}

/** With the repository's name where that is another. */
export const shownPath = ({ path, from }: Pick<Start, "path" | "from">): string =>
  from ? `${from.repository}/${path}` : path;

/** The span ends when the run is recorded; those of its jobs are children of it. */
export async function tracedSubmit(
  client: StartPorts["client"],
  order: Order,
  traces: StartPorts["traces"],
): Promise<Submitted> {
  const traced = traces?.begin("ci start a run", undefined);
  try {
    const submitted = await client.submit(traced ? { ...order, trace: traced.traceparent } : order);
    traced?.end(undefined);
    return submitted;
  } catch (error) {
    traced?.end(error instanceof Error ? error.message : String(error));
    throw error;
  }
}

/** What is wrong with an expression of the file is its author's to know. */
export function evaluated<T>(doing: string, evaluate: () => T): T {
  try {
    return evaluate();
  } catch (error) {
    if (!(error instanceof TemplateFault)) throw error;
    throw new Fault("invalid", doing, { why: error.message });
  }
}
