/**
 * What a worker does for one cell of a job: it gives the job's program a folder with the request in it, passes its log
 * and its steps on while it runs, and commits what it came to. A job that fails is a result as well; only what this
 * machine did wrong is tried again.
 */
import { appendFileSync, constants } from "node:fs";
import { open } from "node:fs/promises";
import { arch, platform } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { WorkPlace } from "#door/ports.ts";
import { preloadFlags } from "#worker/process/preload-flags.ts";
import type { Sources } from "#sources/sources.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { Stopped } from "#worker/holding.ts";
import type { Left, RunContext, RunOutcome, Runner } from "#worker/runner.ts";
import { archNames, osNames } from "#doors/ci/local/machine.ts";
import { cellOf } from "#doors/ci/cell-task.ts";
import { stopMarginMs } from "#doors/ci/plan.ts";
import type { CellResult } from "#doors/ci/result.ts";
import { readCellTask } from "#doors/ci/runs/planners.ts";
import { whoOf } from "#doors/ci/services/id-token.ts";
import type { Permissions } from "#doors/ci/workflow/compile/permissions.ts";
import type { PlainValue } from "#doors/ci/workflow/expression/value.ts";
import type { CiServices } from "#doors/ci/services/services.ts";
import { readRun, type RunRecord } from "#doors/ci/runs/record.ts";
import { type RunFacts, runFacts, withRunFacts } from "#doors/ci/runs/run-facts.ts";
import { keep } from "#doors/ci/runs/texts.ts";
import { type ActionSettings, layActions } from "./actions.ts";
import { type JobBox, plainBox, sandboxBox } from "./box.ts";
import { askToCancel } from "./cancel-file.ts";
import { bringCommit } from "./checkout.ts";
import type { CompileCache } from "./compile-cache.ts";
import { keepDetails } from "./read-details.ts";
import { keeping, readerOf } from "./keeping.ts";
import { bringLog } from "./kept-steps.ts";
import { formatLine } from "./log-line.ts";
import { LogSender } from "./log-sender.ts";
import { type JobRequest, names } from "./request.ts";
import type { StepReader } from "./step-reader.ts";
import { vaultSecrets } from "./vault-secrets.ts";
import type { Vault } from "#vault/vault.ts";

export type CellPorts = {
  readonly node: string;
  readonly client: Pick<WorkClient, "job">;
  readonly place: WorkPlace;
  readonly isBoxed: boolean;
  readonly compiled: Pick<CompileCache, "env">;
  readonly sources: Sources;
  readonly vault: Pick<Vault, "list" | "read">;
  readonly services: Pick<CiServices, "jobServices">;
  /** How a job reaches a node; undefined where none can be reached. */
  readonly url: () => string | undefined;
  /** Where actions of others come from. */
  readonly actions: Omit<ActionSettings, "sources">;
  /** A key of the cluster for what jobs keep between steps. */
  readonly keptKey: () => Promise<Uint8Array>;
  /** For jobs that do not say it themselves. */
  readonly onRunnerLoss: "resume" | "restart";
};

const host = fileURLToPath(new URL("./host.ts", import.meta.url));
const putBack = fileURLToPath(new URL("./put-back.ts", import.meta.url));
const logBytesMax = 512 * 1024 * 1024;
const outcomeBytesMax = 4 * 1024 * 1024;
/** How long a cancelled job may take to end, where its task does not say. */
const cancelMsDefault = 8_000;

export const cellRunner =
  (ports: CellPorts): Runner =>
  async (context) => {
    const inBox = async (usesKept: boolean): Promise<RunOutcome | "damaged"> => {
      const { boxed, ...place } = ports.place;
      await using box = ports.isBoxed && boxed ? await sandboxBox(boxed, context) : await plainBox(place, context);
      return await runCell(box, context, ports, usesKept);
    };
    const outcome = await inBox(true);
    if (outcome !== "damaged") return outcome;
    const again = await inBox(false);
    if (again === "damaged") throw new Fault("corrupt", "start the job again", { task: context.task.taskId });
    return again;
  };

/** "damaged": what an earlier attempt kept cannot be put back, and nothing has run yet. */
async function runCell(
  box: JobBox,
  context: RunContext,
  ports: CellPorts,
  usesKept: boolean,
): Promise<RunOutcome | "damaged"> {
  const { task, blobs } = context;
  const { cell, fails, request, kept, isDamaged } = await prepare(box, context, ports, usesKept);
  for (const [name, text] of [
    [names.request, JSON.stringify(request)],
    [names.log, ""],
    [names.steps, ""],
  ] as const)
    box.give(name, text);
  if (kept && !(await isPutBack(box, context, ports))) return "damaged";
  if (isDamaged || !usesKept) appendFileSync(join(box.folder, names.log), startsAgain());
  const log = ports.place.live && new LogSender(ports.place.live, task);
  if (kept) await bringLog(kept, join(box.folder, names.log), task, ports.place);
  const steps = readerOf(request, kept, { box, context, log });
  await log?.follow(join(box.folder, names.log));
  await steps.follow(join(box.folder, names.steps));
  using stop = stopping(box, context);
  try {
    const env = { ...ports.place.env, ...ports.compiled.env() };
    const end = await box.run({ argv: [process.execPath, ...preloadFlags(), host], env }, stop.signal);
    const outcome = await readOutcome(join(box.folder, names.outcome));
    if (isCancelled(context.signal)) return await stopped({ box, log, steps }, context);
    context.signal.throwIfAborted();
    if (!outcome) throw new Fault("unavailable", "run the job", { exitCode: end.exitCode, said: end.said.trim() });
    const digest = await log?.seal();
    context.afterwards?.(() => void log?.remove().catch(() => {}));
    const ended = { ...outcome, isFailureAllowed: cell.isFailureAllowed, steps: [...(await steps.end())] };
    const details = await keepDetails(join(box.folder, names.details), blobs);
    const left = await leftOf(ended, { digest, details, token: task.token, blobs });
    if (outcome.result === "failure" && fails)
      return { kind: "failed", reason: "user-failure", message: `the job ${cell.name} failed`, left };
    return { kind: "done", ...left };
  } catch (error) {
    if (isCancelled(context.signal)) return await stopped({ box, log, steps }, context);
    await log?.keep();
    throw error;
  } finally {
    await steps.end().catch(() => {}); // a file that cannot be read is no reason to say that the job failed
  }
}

/** As a program of its own: the log is not followed before it is known whether the job goes on or starts again. */
async function isPutBack(box: JobBox, { signal }: RunContext, { place, compiled }: CellPorts): Promise<boolean> {
  const env = { ...place.env, ...compiled.env() };
  const end = await box.run({ argv: [process.execPath, ...preloadFlags(), putBack], env }, signal);
  signal.throwIfAborted();
  return end.exitCode === 0;
}

const startsAgain = (): string =>
  formatLine({
    at: new Date().toISOString(),
    kind: "warning",
    text: "What the job had kept before its runner was lost is damaged: the job starts again.",
  });

const isCancelled = ({ aborted, reason }: AbortSignal): boolean =>
  aborted && reason instanceof Stopped && reason.why === "cancelled";

/** An attempt that was cancelled has no result, but it leaves its log and its steps. */
async function stopped(
  { box, log, steps }: { readonly box: JobBox; readonly log: LogSender | undefined; readonly steps: StepReader },
  { task, blobs }: RunContext,
): Promise<RunOutcome> {
  const digest = await log?.seal().catch(() => undefined);
  await log?.keep(); // for readers after the job has left memory
  const ended = {
    result: "cancelled" as const,
    outputs: {},
    isFailureAllowed: false,
    steps: [...(await steps.end())],
  };
  const details = await keepDetails(join(box.folder, names.details), blobs);
  const left = await leftOf(ended, { digest, details, token: task.token, blobs });
  return { kind: "failed", reason: "cancelled", message: "cancelled", left };
}

async function prepare(box: JobBox, context: RunContext, ports: CellPorts, usesKept: boolean) {
  const { task, blobs } = context;
  const cellTask = await readCellTask(task.spec, blobs);
  const record = await readRun(blobs, cellTask.run);
  const facts = await runFacts(ports.client, task.jobId, cellTask.run.about);
  const { spec, cell, fails, secrets, permissions } = cellOf(cellTask, withRunFacts(record, facts));
  const { source } = record;
  const { onRunnerLoss = ports.onRunnerLoss } = spec;
  const keep = onRunnerLoss === "resume" ? await keeping(box, context, ports.keptKey, usesKept) : {};
  const mirror = source && (await mirrorOf(source, task.tenant, ports));
  if (source && mirror !== undefined && !keep.kept) box.own(await bringCommit(mirror, source.sha, box.folder));
  const actions = await layActions(
    { ...ports.actions, sources: ports.sources },
    {
      tenant: task.tenant,
      box: box.folder,
      steps: spec.steps,
      ...(source && mirror !== undefined && { commit: { mirror, sha: source.sha } }),
    },
  );
  if (Object.values(actions).some(({ folder }) => folder !== undefined)) box.own(join(box.folder, names.actions));
  const access = await context.access?.();
  const given = await granted(record, { facts, permissions, github: spec.contexts["github"] ?? null }, context, ports);
  const request: JobRequest = {
    spec: { ...spec, key: [cellTask.job, ...cellTask.cells].join("/") },
    ...(access && { access: { server: access.server, token: access.token } }),
    runner: runnerOf(ports.node),
    env: { ...ports.place.env, ...given.idEnv },
    ...passedOn(given.request, secrets),
    ...(source && { checkout: { sha: source.sha, ref: cellTask.run.about.ref } }),
    actions,
    ...(keep.request && { keep: keep.request }),
    logBytesMax,
  };
  return { cell, fails, request, kept: keep.kept, isDamaged: keep.isDamaged === true };
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
    github,
  }: { readonly facts: Pick<RunFacts, "attempt">; readonly permissions: Permissions; readonly github: PlainValue },
  { task, clock }: RunContext,
  { services, url, vault }: CellPorts,
): Promise<{
  readonly request: Pick<JobRequest, "secrets" | "actionEnv" | "github" | "masked">;
  readonly idEnv: Readonly<Record<string, string>>;
}> {
  const origin = url();
  if (!record.source) return { request: { secrets: {} }, idEnv: {} };
  const own = isOfFork(record) ? {} : await vaultSecrets(vault, task.tenant, record.source.repository);
  if (origin === undefined) return { request: { secrets: own }, idEnv: {} };
  const hasIdentity = permissions["id-token"] === "write" && !isOfFork(record);
  const given = await services.jobServices({
    tenant: task.tenant,
    run: task.jobId,
    task: task.taskId,
    claim: task.token,
    runAttempt: facts.attempt,
    permissions,
    ...(hasIdentity && { who: whoOf(github, { tenant: task.tenant, task: task.taskId }) }),
    repository: record.source.repository,
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
  { sources }: CellPorts,
): Promise<string> {
  const found = await sources.get(tenant, repository);
  return await sources.copies.having(found, sha).catch(async (error: unknown) => {
    if (!pull || !isFault(error, "not-found")) throw error;
    await sources.setPull(found, pull);
    return await sources.copies.having(found, sha);
  });
}

const runnerOf = (node: string): Readonly<Record<string, string>> => ({
  name: node,
  os: osNames[platform()] ?? "Linux",
  arch: archNames[arch()] ?? "X64",
  environment: "self-hosted",
});

/** What the kernel remembers of it. */
async function leftOf(
  { outputs, ...ended }: Pick<CellResult, "result" | "outputs" | "isFailureAllowed" | "steps">,
  {
    digest,
    details,
    token,
    blobs,
  }: {
    readonly digest: Digest | undefined;
    readonly details: Digest | undefined;
    readonly token: number;
    readonly blobs: BlobStore;
  },
): Promise<Left & { readonly digests: readonly Digest[] }> {
  const kept = await keep(blobs, outputs);
  const payload: CellResult = {
    ...ended,
    token,
    outputs: "value" in kept ? kept.value : {},
    ...("blob" in kept && { outputsBlob: kept.blob }),
    ...(digest !== undefined && { log: digest }),
    ...(details !== undefined && { details }),
  };
  const digests = [digest, details, "blob" in kept ? kept.blob : undefined].filter((one) => one !== undefined);
  return { payload: JSON.stringify(payload), digests };
}

const Outcome = z.object({
  result: z.enum(["success", "failure", "cancelled"]),
  outputs: z.record(z.string(), z.string()),
});

/** The job could have put anything there: only a plain file of a reasonable size is read. */
async function readOutcome(path: string): Promise<z.output<typeof Outcome> | undefined> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const facts = await file.stat();
    if (!facts.isFile() || facts.size > outcomeBytesMax) return undefined;
    return Outcome.safeParse(JSON.parse(await file.readFile("utf8"))).data;
  } catch {
    return undefined;
  }
}

/** A cancelled job gets time to end by itself; one whose claim is gone does not. */
function stopping(
  { folder }: JobBox,
  { signal, clock, task }: RunContext,
): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const cancelMs = task.stopMs === undefined ? cancelMsDefault : Math.max(1_000, task.stopMs - stopMarginMs / 2);
  let cancelTimer = (): void => {};
  const stop = (): void => {
    if (!isCancelled(signal)) return controller.abort(signal.reason);
    askToCancel(folder);
    cancelTimer = clock.after(cancelMs, () => controller.abort(signal.reason));
  };
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      signal.removeEventListener("abort", stop);
      cancelTimer();
    },
  };
}
