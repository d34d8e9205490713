/**
 * What only a node knows of a job that is to run: what it consists of, secrets and tokens, its commit, its actions.
 * A runner on the node is given it as it is; one elsewhere asks for it, and gets it for a claim that it holds.
 */
import { hkdfSync } from "node:crypto";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { Sources } from "#sources/sources.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { Vault } from "#vault/vault.ts";
import { type CellTask, cellOf } from "#doors/ci/cell-task.ts";
import { type RunRecord, readRun } from "#doors/ci/runs/record.ts";
import { type RunFacts, runFacts, withRunFacts } from "#doors/ci/runs/run-facts.ts";
import type { Variables } from "#doors/ci/runs/variables.ts";
import { vaultSecrets } from "#doors/ci/secrets/vault-secrets.ts";
import type { JobSpec } from "#doors/ci/run/spec.ts";
import { whoOf } from "#doors/ci/services/id-token.ts";
import type { CiServices } from "#doors/ci/services/services.ts";
import type { JobRetry, OnRunnerLoss } from "#doors/ci/workflow/compile/millrace.ts";
import type { Permissions } from "#doors/ci/workflow/compile/permissions.ts";
import type { PlainValue } from "#doors/ci/workflow/expression/value.ts";
import type { BlobStore } from "#blobs/store.ts";
import { readFrom } from "#doors/ci/runs/from-step.ts";
import { type ActionSettings, layActions } from "./actions.ts";
import type { CommitPacks } from "./commit-packs.ts";
import type { Kept } from "./kept-steps.ts";
import { type JobRequest, names } from "./request.ts";

export type KnownPorts = {
  readonly client: Pick<WorkClient, "job">;
  readonly sources: Sources;
  readonly vault: Pick<Vault, "list" | "read">;
  readonly services: Pick<CiServices, "jobServices">;
  /** Variables of environments; those of a run are in its record. */
  readonly variables: Pick<Variables, "ofEnvironment">;
  readonly commits: Pick<CommitPacks, "bring">;
  /** Where actions of others come from. */
  readonly actions: Omit<ActionSettings, "sources">;
  /** A key of the cluster for what jobs keep between steps. */
  readonly keptKey: () => Promise<Uint8Array>;
  /** For jobs that were planned before this was decided there. */
  readonly onRunnerLoss: OnRunnerLoss;
};

/** The claim under which the job runs. */
export type TaskKnown = {
  readonly tenant: string;
  readonly jobId: string;
  readonly taskId: string;
  readonly token: number;
  readonly attemptMs: number;
};

/** As JSON can hold it. */
export type JobKnown = {
  readonly cell: { readonly name: string; readonly isFailureAllowed: boolean; readonly retry?: JobRetry };
  readonly fails: boolean;
  readonly request: Pick<JobRequest, "spec" | "secrets" | "masked" | "actionEnv" | "github" | "checkout">;
  /** Variables with which steps ask for a token that proves who they are. */
  readonly idEnv: Readonly<Record<string, string>>;
  /** Seals what the job keeps, as base64; left out: a job whose runner is lost starts again. */
  readonly keptKey?: string | undefined;
  /** What a run before it kept, if the job goes on from there. */
  readonly from?: { readonly run: string; readonly step: number; readonly kept: Kept; readonly isEdited: boolean };
};

type Laid = NonNullable<JobRequest["actions"]>;
/** Puts the commit and the actions into the job's folder. */
export type Bring = (
  folder: string,
  how: {
    readonly isCommitWanted: boolean;
    /** By `owner/repo@ref`: what the job used so far, and uses on. */
    readonly commits: Kept["actions"];
  },
) => Promise<Laid>;
export type KnownHere = JobKnown & { readonly bring: Bring };

export type KnownAt = {
  readonly task: TaskKnown;
  readonly blobs: BlobStore;
  readonly clock: Pick<Clock, "wallMs">;
  /** How the job reaches a node; undefined where none can be reached. */
  readonly origin: string | undefined;
};

export async function jobKnown(cellTask: CellTask, at: KnownAt, ports: KnownPorts): Promise<KnownHere> {
  const { task, blobs } = at;
  const record = await readRun(blobs, cellTask.run);
  const facts = await runFacts(ports.client, task.jobId, cellTask.run.about);
  const { spec, cell, fails, secrets, permissions } = cellOf(cellTask, withRunFacts(record, facts));
  const { source } = record;
  const { onRunnerLoss = ports.onRunnerLoss } = cellTask;
  const from = cellTask.goesOn ? record.from : undefined;
  const sealedFor = from ? { tenant: task.tenant, jobId: from.sealedFor.job, taskId: from.sealedFor.task } : task;
  const keptKey = onRunnerLoss === "resume" ? await sealingKey(sealedFor, ports.keptKey) : undefined;
  const known = from && (await readFrom(from.kept, blobs));
  const environment = spec.environment?.name;
  const job = { facts, permissions, environment, github: spec.contexts["github"] ?? null };
  const given = await granted(record, job, at, ports);
  const vars = source && environment !== undefined ? { repository: source.repository, environment } : undefined;
  return {
    cell: { name: cell.name, isFailureAllowed: cell.isFailureAllowed, ...(cell.retry && { retry: cell.retry }) },
    fails,
    request: {
      spec: {
        ...spec,
        key: [cellTask.job, ...cellTask.cells].join("/"),
        ...(vars && { contexts: withVars(spec.contexts, await ports.variables.ofEnvironment(task.tenant, vars)) }),
      },
      ...passedOn(given.request, secrets),
      ...(source && { checkout: { sha: source.sha, ref: cellTask.run.about.ref } }),
    },
    idEnv: given.idEnv,
    ...(keptKey !== undefined && { keptKey }),
    ...(from &&
      known && { from: { run: from.run, step: from.step, kept: known, isEdited: from.script !== undefined } }),
    bring: async (folder, { isCommitWanted, commits }) => {
      const mirror = source && (await mirrorOf(source, task.tenant, ports));
      if (source && mirror !== undefined && isCommitWanted)
        await ports.commits.bring(mirror, source.sha, join(folder, names.source));
      const commit = source && mirror !== undefined ? { commit: { mirror, sha: source.sha } } : {};
      const used = { ...known?.actions, ...commits };
      const using = { tenant: task.tenant, box: folder, steps: spec.steps, commits: used, ...commit };
      return await layActions({ ...ports.actions, sources: ports.sources }, using);
    },
  };
}

/** One task's own: a runner that has it opens nothing of other tasks. Nodes without keys keep nothing. */
async function sealingKey(
  { tenant, jobId, taskId }: Pick<TaskKnown, "tenant" | "jobId" | "taskId">,
  keptKey: KnownPorts["keptKey"],
): Promise<string | undefined> {
  const secret = await keptKey().catch(() => undefined);
  return secret && Buffer.from(hkdfSync("sha256", secret, "", `${tenant} ${jobId} ${taskId}`, 32)).toString("base64");
}

/** CI-61: a called workflow knows the secrets that its callers give it; what it does not know stays masked. */
function passedOn<T extends Pick<JobRequest, "secrets" | "masked">>(
  granted: T,
  passes: (all: ReadonlyMap<string, string>) => ReadonlyMap<string, string>,
): T {
  const all = new Map(Object.entries(granted.secrets));
  const known = passes(all);
  const hidden = [...all.values()].filter((value) => value !== "");
  return known === all
    ? granted
    : { ...granted, secrets: Object.fromEntries(known), masked: [...(granted.masked ?? []), ...hidden] };
}

/** What the job may call, and with which token: both end with its claim. */
async function granted(
  record: RunRecord,
  {
    facts,
    permissions,
    environment,
    github,
  }: {
    readonly facts: Pick<RunFacts, "attempt">;
    readonly permissions: Permissions;
    readonly environment: string | undefined;
    readonly github: PlainValue;
  },
  { task, clock, origin }: Pick<KnownAt, "task" | "clock" | "origin">,
  { services, vault }: KnownPorts,
): Promise<{
  readonly request: Pick<JobRequest, "secrets" | "actionEnv" | "github" | "masked">;
  readonly idEnv: Readonly<Record<string, string>>;
}> {
  if (!record.source) return { request: { secrets: {} }, idEnv: {} };
  const isFork = isOfFork(record);
  const { repository } = record.source;
  const own = isFork ? {} : await vaultSecrets(vault, task.tenant, { repository, environment });
  if (origin === undefined) return { request: { secrets: own }, idEnv: {} };
  const hasIdentity = permissions["id-token"] === "write" && !isFork;
  const given = await services.jobServices({
    tenant: task.tenant,
    run: task.jobId,
    task: task.taskId,
    claim: task.token,
    runAttempt: facts.attempt,
    permissions: isFork ? readOnly(permissions) : permissions,
    ...(hasIdentity && { who: whoOf(github, { tenant: task.tenant, task: task.taskId, environment }) }),
    repository,
    cacheRefs: cacheRefsOf(record),
    origin,
    untilMs: clock.wallMs() + task.attemptMs,
  });
  const { GITHUB_SERVER_URL = "", GITHUB_API_URL = "", GITHUB_GRAPHQL_URL = "" } = given.env;
  const request = {
    secrets: { ...own, GITHUB_TOKEN: given.token },
    actionEnv: given.actionEnv,
    github: { server_url: GITHUB_SERVER_URL, api_url: GITHUB_API_URL, graphql_url: GITHUB_GRAPHQL_URL },
    masked: given.secrets,
  };
  return { request, idEnv: given.idEnv };
}

/** CI-57: whatever the file asks for. */
const readOnly = (permissions: Permissions): Permissions =>
  Object.fromEntries(Object.entries(permissions).map(([scope, level]) => [scope, level === "write" ? "read" : level]));

/** Those of the environment count more. */
function withVars(contexts: JobSpec["contexts"], own: Readonly<Record<string, string>>): JobSpec["contexts"] {
  return { ...contexts, vars: { ...(contexts["vars"] as Readonly<Record<string, PlainValue>>), ...own } };
}

/** CI-57: what comes from a fork gets no secrets. */
function isOfFork({ github, source, isFork = false }: RunRecord): boolean {
  if (isFork) return true;
  const { event_name: name, event } = github as {
    readonly event_name?: string;
    readonly event?: {
      readonly pull_request?: { readonly head?: { readonly repo?: { readonly full_name?: string } } };
    };
  };
  const from = event?.pull_request?.head?.repo?.full_name;
  return name === "pull_request" && from !== undefined && from !== source?.repository;
}

/** CI-69: its own ref, then the base of a pull request, then the default branch. */
function cacheRefsOf({ github }: RunRecord): readonly string[] {
  const {
    ref,
    base_ref: base,
    event,
  } = github as {
    readonly ref?: string;
    readonly base_ref?: string;
    readonly event?: { readonly repository?: { readonly default_branch?: string } };
  };
  const standard = event?.repository?.default_branch;
  const refs = [ref, base && `refs/heads/${base}`, standard && `refs/heads/${standard}`];
  return [...new Set(refs.flatMap((one) => (one === undefined || one === "" ? [] : [one])))];
}

/** A merge of a pull request may have been made on another node: here it is made again. */
async function mirrorOf(
  { repository, sha, pull }: NonNullable<RunRecord["source"]>,
  tenant: string,
  { sources }: KnownPorts,
): Promise<string> {
  const found = await sources.get(tenant, repository);
  return await sources.copies.having(found, sha).catch(async (error: unknown) => {
    if (!pull || !isFault(error, "not-found")) throw error;
    await sources.setPull(found, pull);
    return await sources.copies.having(found, sha);
  });
}
