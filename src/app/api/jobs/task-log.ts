/** Serves what one task printed as plain text, with ranges: from its worker while it runs, then from the store. */
import type { Digest } from "#base/digest.ts";
import { digestSizeBytes } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { formatTask, parseJob } from "#base/ids.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { StreamKey } from "#blobs/streams.ts";
import { namesEtag } from "#http/etag.ts";
import { Problem } from "#http/problem.ts";
import { readRange } from "#http/range.ts";
import type { Reply } from "#http/route.ts";
import type { JobView, TaskView } from "#kernel/read/query.ts";
import type { AttemptEnd, PrintedByDoor } from "#worker/follow/printed.ts";
import type { LiveSource } from "#worker/printed/live-source.ts";
import type { OutputPorts } from "./job-output.ts";

export type LogQuery = {
  readonly jobId: string;
  readonly view: JobView;
  readonly task: number;
  readonly stream: string | undefined;
  readonly headers: Headers;
  readonly signal: AbortSignal;
};

/** Where the bytes are. A stream grows while it is read: the answer has what was there when the request came. */
type Log =
  | { readonly kind: "empty" }
  | { readonly kind: "sealed"; readonly digest: Digest; readonly blobs: BlobStore }
  | { readonly kind: "live"; readonly worker: string; readonly key: StreamKey; readonly sizeBytes: number };

/** The stream of an attempt that ends meanwhile is removed once its blob is there: then it is looked up again. */
const triesMax = 3;

export async function logReply(ports: OutputPorts, query: LogQuery): Promise<Reply<AsyncIterable<Uint8Array>>> {
  const { headers: requested, view } = query;
  const printed = Object.hasOwn(ports.printed, view.door) ? ports.printed[view.door] : undefined;
  const [first = ""] = printed?.names ?? [];
  const stream = query.stream ?? first;
  if (!printed?.names.includes(stream))
    throw new Problem(404, `tasks of this job print to ${printed?.names.join(" and ") || "no stream that is kept"}`);
  const log = await logOf(ports, printed, { ...query, stream });
  const sizeBytes = sizeOf(log);
  const etag = log.kind === "sealed" ? `"${log.digest}"` : undefined;
  const headers = {
    "accept-ranges": "bytes",
    "millrace-log": log.kind,
    "content-disposition": "inline",
    ...(etag !== undefined && { etag }),
  };
  if (etag !== undefined && namesEtag(requested.get("if-none-match"), etag))
    return { status: 304, headers, body: nothing() };
  const isAsBefore = requested.get("if-range") === null || requested.get("if-range") === etag;
  const range = isAsBefore ? readRange(requested.get("range"), sizeBytes) : "all";
  if (range === "unsatisfiable")
    throw new Problem(416, `the log has ${sizeBytes} bytes`, { headers: { "content-range": `bytes */${sizeBytes}` } });
  const { offset, length } = range === "all" ? { offset: 0, length: sizeBytes } : range;
  const part = range === "all" ? {} : { "content-range": `bytes ${offset}-${offset + length - 1}/${sizeBytes}` };
  return {
    status: range === "all" ? 200 : 206,
    headers: { ...headers, ...part, "content-length": String(length) },
    body: bytesOf(log, { offset, length }, ports.live, query.signal),
  };
}

const sizeOf = (log: Log): number =>
  log.kind === "empty" ? 0 : log.kind === "live" ? log.sizeBytes : digestSizeBytes(log.digest);

/** The history has not got so far yet, or it was lost: an empty answer would say that nothing was printed. */
const unknownWorker = "it is not known (yet) which worker ran the task: ask again in a moment";

async function* nothing(): AsyncGenerator<Uint8Array> {}

async function logOf(
  { work, live }: OutputPorts,
  printed: PrintedByDoor,
  { jobId, view, task, stream, signal }: LogQuery & { readonly stream: string },
): Promise<Log> {
  const taskId = formatTask(parseJob(jobId)?.shard ?? 0, task);
  const keyFor = (token: number): StreamKey => ({ tenant: view.tenant, task: taskId, token, name: stream });
  const liveLog = async (worker: string, token: number): Promise<Log | undefined> => {
    const sizeBytes = token > 0 ? await live?.size(worker, keyFor(token), signal) : undefined;
    return sizeBytes === undefined ? undefined : { kind: "live", worker, key: keyFor(token), sizeBytes };
  };
  let now: TaskView | undefined = view.tasks.find((one) => one.task === task);
  for (let tries = 0; tries < triesMax; tries += 1) {
    if (!now || tries > 0) now = await taskNow(work, { jobId, task, taskId, signal });
    const claim = now.claims.at(-1);
    if (claim) {
      const log = await liveLog(claim.executor, claim.token);
      if (log) return log;
      continue;
    }
    const end = endOf(now);
    const found = end && (await printed.find(end, view.tenant));
    const digest = found?.streams[stream];
    if (found && digest !== undefined) return { kind: "sealed", digest, blobs: found.blobs };
    if (found) return { kind: "empty" };
    // Without a result: what its worker acknowledged is all there is.
    const last = (await work.attempts(jobId)).findLast((row) => row.task === task);
    if (!last && now.attempts > 0) throw new Problem(404, unknownWorker);
    return (last && (await liveLog(last.executor, last.token))) ?? { kind: "empty" };
  }
  return { kind: "empty" };
}

/** The task as its shard knows it; a job that has left memory is read from history. */
async function taskNow(
  work: OutputPorts["work"],
  { jobId, task, taskId, signal }: Pick<LogQuery, "jobId" | "task" | "signal"> & { readonly taskId: string },
): Promise<TaskView> {
  const { view, live } = await work.job(jobId, { tasksMax: 1_000, signal });
  const found = view.tasks.find((one) => one.task === task);
  if (found) return found;
  const other = live ? await work.task(taskId, { signal }) : undefined;
  if (other?.jobId !== jobId) throw new Fault("not-found", "find task", { job: jobId, task: taskId });
  return other;
}

const endOf = ({ result, lastFailure }: TaskView): AttemptEnd | undefined =>
  result ? { result } : lastFailure && { failure: lastFailure.message, left: lastFailure.result };

/** Exactly `length` bytes: the answer's header has promised them. */
async function* bytesOf(
  log: Log,
  { offset, length }: { readonly offset: number; readonly length: number },
  live: LiveSource | undefined,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  if (log.kind === "empty" || length === 0) return;
  if (log.kind === "sealed") {
    for await (const part of log.blobs.read(log.digest, { offset, length })) yield Uint8Array.from(part);
    return;
  }
  for (let at = offset; at < offset + length;) {
    const bytes = await live?.pull(log.worker, log.key, at, { waitMs: 5_000, signal });
    if (!bytes?.length) throw new Fault("unavailable", "read output", { why: "it was sealed meanwhile; ask again" });
    yield bytes.subarray(0, offset + length - at);
    at += bytes.length;
  }
}
