/**
 * What a worker does for one cell of a job: it gives the job's program a folder with the request in it, passes its log
 * and its steps on while it runs, and commits what it came to. A job that fails is a result as well; only what this
 * machine did wrong is tried again.
 */
import { appendFileSync, constants, existsSync } from "node:fs";
import { open } from "node:fs/promises";
import { arch, platform } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { WorkPlace } from "#door/ports.ts";
import { preloadFlags } from "#worker/process/preload-flags.ts";
import { Stopped } from "#worker/holding.ts";
import type { Left, RunContext, RunOutcome, Runner } from "#worker/runner.ts";
import { isTriedAgain, type OwnEnd } from "#doors/ci/attempts.ts";
import { archNames, osNames } from "#doors/ci/local/machine.ts";
import { stopMarginMs } from "#doors/ci/plan.ts";
import type { CellResult } from "#doors/ci/result.ts";
import { keep, writeText } from "#doors/ci/runs/texts.ts";
import { type Guard, guardContainers } from "#doors/ci/containers/guard.ts";
import { type LabelledHost, mayNeedContainers } from "#doors/ci/containers/host.ts";
import type { JobRetry } from "#doors/ci/workflow/compile/millrace.ts";
import type { JobBox } from "./box.ts";
import { askToCancel } from "./cancel-file.ts";
import type { CompileCache } from "./compile-cache.ts";
import { keepDetails } from "./read-details.ts";
import { keeping, readerOf } from "./keeping.ts";
import { bringLog, digestsOf, type Kept } from "./kept-steps.ts";
import { formatLine } from "./log/log-line.ts";
import { LogSender } from "./log/log-sender.ts";
import type { JobKnown, KnownHere } from "./known.ts";
import { folderVariable, type JobRequest, names } from "./request.ts";
import type { StepReader } from "./step-reader.ts";

export type CellPorts = {
  readonly node: string;
  readonly place: WorkPlace;
  readonly compiled: Pick<CompileCache, "program">;
  /** What only a node knows of the job. */
  readonly known: (context: RunContext) => Promise<KnownHere>;
  readonly box: (context: RunContext) => Promise<JobBox>;
  /** Left out: this machine runs no containers. */
  readonly containers?: (task: RunContext["task"]) => LabelledHost | undefined;
  readonly logBytesMax?: number;
};

const putBack = fileURLToPath(new URL("./put-back.ts", import.meta.url));
const logBytesMax = 512 * 1024 * 1024;
const outcomeBytesMax = 4 * 1024 * 1024;
/** No job uses more: five days of a hundred processors. */
const cpuMsMax = 5 * 24 * 3_600_000 * 100;
/** How long a cancelled job may take to end, where its task does not say. */
const cancelMsDefault = 8_000;

export const cellRunner =
  (ports: CellPorts): Runner =>
  async (context) => {
    const inBox = async (usesKept: boolean): Promise<RunOutcome | "damaged"> => {
      await using box = await ports.box(context);
      return await runCell(box, context, ports, usesKept);
    };
    const outcome = await inBox(true);
    if (outcome !== "damaged") return outcome;
    const again = await inBox(false);
    if (again !== "damaged") return again;
    const message = "what was kept before the step that the job was to go on from is gone: run the whole job again";
    return { kind: "failed", reason: "user-failure", message };
  };

/** "damaged": what an earlier attempt, or an earlier run, kept cannot be put back, and nothing has run yet. */
async function runCell(
  box: JobBox,
  context: RunContext,
  ports: CellPorts,
  usesKept: boolean,
): Promise<RunOutcome | "damaged"> {
  const { task, blobs } = context;
  const { cell, fails, request, kept, isDamaged, from } = await prepare(box, context, ports, usesKept);
  if (from && !kept) return "damaged";
  for (const [name, text] of [
    [names.request, JSON.stringify(request)],
    [names.log, ""],
    [names.steps, ""],
  ] as const)
    box.give(name, text);
  if (kept && !(await isPutBack(box, context, ports))) return "damaged";
  if ((isDamaged || !usesKept) && !from) appendFileSync(join(box.folder, names.log), note("warning", startsAgain));
  const log = ports.place.live && new LogSender(ports.place.live, task, context);
  if (kept) await bringLog(kept, join(box.folder, names.log), task, { live: ports.place.live, blobs });
  if (kept === from?.kept && from) appendFileSync(join(box.folder, names.log), note("notice", goesOn(from)));
  const steps = readerOf(request, { kept, actions: request.actions }, { box, context, log });
  await log?.follow(join(box.folder, names.log));
  await steps.follow(join(box.folder, names.steps));
  using stop = stopping(box, context);
  // it also removes them if this process is killed
  await using _guard = guardOf(request);
  try {
    const program = ports.compiled.program();
    const env = { ...ports.place.env, ...program.env, [folderVariable]: box.seenAs };
    const end = await box.run({ argv: program.argv, env }, stop.signal);
    const outcome = await readOutcome(join(box.folder, names.outcome));
    if (isCancelled(context.signal)) return await stopped({ box, log, steps, actions: request.actions }, context);
    context.signal.throwIfAborted();
    if (!outcome) throw new Fault("unavailable", "run the job", { exitCode: end.exitCode, said: end.said.trim() });
    const digest = await log?.seal();
    context.afterwards?.(() => void log?.remove().catch(() => {}));
    const { isTimeout: _isTimeout, cpuMs = 0, ...whole } = outcome;
    const usedMs = Math.round(end.cpuMs ?? cpuMs);
    const ended = { ...whole, isFailureAllowed: cell.isFailureAllowed, steps: [...(await steps.end())] };
    const details = await keepDetails(join(box.folder, names.details), blobs, request.actions);
    const kept = outcome.result === "success" ? undefined : steps.kept;
    const left = await leftOf(ended, { digest, details, kept, token: task.token, blobs, cpuMs: usedMs });
    const again = whyAgain(outcome, cell.retry, task);
    if (again) return { kind: "failed", ...again, left };
    if (outcome.result === "failure" && fails)
      return { kind: "failed", reason: "user-failure", message: `the job ${cell.name} failed`, left };
    return { kind: "done", ...left };
  } catch (error) {
    if (isCancelled(context.signal)) return await stopped({ box, log, steps, actions: request.actions }, context);
    await log?.keep();
    throw error;
  } finally {
    await steps.end().catch(() => {}); // a file that cannot be read is no reason to say that the job failed
  }
}

/** Undefined: what the job came to is its end. */
function whyAgain(
  { result, isTimeout }: JobEnded,
  retry: JobRetry | undefined,
  { failures }: RunContext["task"],
): { readonly reason: OwnEnd; readonly message: string } | undefined {
  const reason = isTimeout ? "timed-out" : "user-failure";
  if ((result !== "failure" && !isTimeout) || !isTriedAgain(retry, reason, failures)) return undefined;
  const count = (failures?.[reason] ?? 0) + 1;
  const max = retry?.counts[isTimeout ? "timed-out" : "failure"] ?? 0;
  return { reason, message: `the job ${isTimeout ? "took too long" : "failed"}: retry ${count} of ${max} follows` };
}

const guardOf = ({ containers, spec }: JobRequest): Guard | undefined =>
  containers && mayNeedContainers(spec) ? guardContainers(containers, process.env) : undefined;

/** As a program of its own: the log is not followed before it is known whether the job goes on or starts again. */
async function isPutBack(box: JobBox, { signal }: RunContext, { place, compiled }: CellPorts): Promise<boolean> {
  const env = { ...place.env, ...compiled.program().env, [folderVariable]: box.seenAs };
  const end = await box.run({ argv: [process.execPath, ...preloadFlags(), putBack], env }, signal);
  signal.throwIfAborted();
  return end.exitCode === 0;
}

const note = (kind: "warning" | "notice", text: string): string =>
  formatLine({ at: new Date().toISOString(), kind, text });
const startsAgain = "What the job had kept before its runner was lost is damaged: the job starts again.";
const goesOn = ({ run, step, isEdited }: NonNullable<JobKnown["from"]>): string =>
  `The job goes on at step ${step}; what is before it is of the run ${run}.` +
  (isEdited ? " The script of that step is not the one of the commit." : "");

const isCancelled = ({ aborted, reason }: AbortSignal): boolean =>
  aborted && reason instanceof Stopped && reason.why === "cancelled";

/** An attempt that was cancelled has no result, but it leaves its log and its steps. */
async function stopped(
  {
    box,
    log,
    steps,
    actions,
  }: {
    readonly box: JobBox;
    readonly log: LogSender | undefined;
    readonly steps: StepReader;
    readonly actions: JobRequest["actions"];
  },
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
  const details = await keepDetails(join(box.folder, names.details), blobs, actions);
  const left = await leftOf(ended, { digest, details, kept: steps.kept, token: task.token, blobs });
  return { kind: "failed", reason: "cancelled", message: "cancelled", left };
}

async function prepare(box: JobBox, context: RunContext, ports: CellPorts, usesKept: boolean) {
  const known = await ports.known(context);
  const keep = await keeping(box, context, known, usesKept);
  const actions = await known.bring(box.folder, {
    isCommitWanted: !keep.kept,
    commits: keep.kept?.actions ?? {},
  });
  for (const name of [names.source, names.actions])
    if (existsSync(join(box.folder, name))) box.own(join(box.folder, name));
  const containers = box.isSandbox ? undefined : ports.containers?.(context.task);
  const access = await context.access?.();
  const request: JobRequest = {
    ...known.request,
    ...(access && { access: { server: access.server, token: access.token } }),
    ...(containers && { containers }),
    runner: runnerOf(ports.node),
    env: { ...ports.place.env, ...known.idEnv },
    actions,
    ...(keep.request && { keep: keep.request }),
    logBytesMax: Math.min(logBytesMax, ports.logBytesMax ?? logBytesMax),
  };
  return {
    cell: known.cell,
    fails: known.fails,
    request,
    kept: keep.kept,
    isDamaged: keep.isDamaged === true,
    from: known.from,
  };
}

const runnerOf = (node: string): Readonly<Record<string, string>> => ({
  name: node,
  os: osNames[platform()] ?? "Linux",
  arch: archNames[arch()] ?? "X64",
  environment: "self-hosted",
});

/** What the kernel remembers of it. */
async function leftOf(
  { outputs, ...ended }: Pick<CellResult, "result" | "outputs" | "isFailureAllowed" | "steps" | "environmentUrl">,
  {
    digest,
    details,
    kept: pieces,
    token,
    blobs,
    cpuMs,
  }: {
    readonly digest: Digest | undefined;
    readonly details: Digest | undefined;
    /** Only of a job that did not succeed: it may be run again from one of its steps. */
    readonly kept: Kept | undefined;
    readonly token: number;
    readonly blobs: BlobStore;
    readonly cpuMs?: number;
  },
): Promise<Left & { readonly digests: readonly Digest[] }> {
  const kept = await keep(blobs, outputs);
  const keptAs = pieces && (await writeText(blobs, JSON.stringify(pieces)));
  const payload: CellResult = {
    ...(cpuMs !== undefined && { cpuMs }),
    ...ended,
    token,
    outputs: "value" in kept ? kept.value : {},
    ...("blob" in kept && { outputsBlob: kept.blob }),
    ...(digest !== undefined && { log: digest }),
    ...(details !== undefined && { details }),
    ...(keptAs !== undefined && { kept: keptAs }),
  };
  const whole = [digest, details, keptAs, "blob" in kept ? kept.blob : undefined].filter((one) => one !== undefined);
  return { payload: JSON.stringify(payload), digests: [...whole, ...(pieces ? digestsOf(pieces) : [])] };
}

const Outcome = z.object({
  result: z.enum(["success", "failure", "cancelled"]),
  outputs: z.record(z.string(), z.string()),
  environmentUrl: z
    .url({ protocol: /^https?$/ })
    .max(2_000)
    .optional(),
  isTimeout: z.boolean().optional(),
  cpuMs: z.number().min(0).max(cpuMsMax).optional(),
});
type JobEnded = z.output<typeof Outcome>;

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
