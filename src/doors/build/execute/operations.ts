/**
 * google.longrunning.Operations over jobs of this door: each tenant sees only its own. A caller that may run actions,
 * but not read the tenant's work, sees those that it started itself.
 */
import { parseDigest } from "#base/digest.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import type { Job } from "#shard/client/client.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { ExecutionStage_Value as Stage } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type {
  CancelOperationRequest,
  GetOperationRequest,
  ListOperationsRequest,
  ListOperationsResponse,
  Operation,
  WaitOperationRequest,
} from "#wire/generated/google/longrunning/operations.ts";
import type { Empty } from "#wire/generated/google/protobuf/empty.ts";
import type { ActionCacheService } from "#doors/build/cache/action-cache.ts";
import { readBuildSpec } from "#doors/build/builds/plan-build.ts";
import { need, needToFollow } from "#doors/build/caller.ts";
import { numberOf, wireOf } from "#doors/build/digests.ts";
import { servedInstance, storeOf, type BuildCall, type BuildPorts } from "#doors/build/call.ts";
import { eachOf } from "#doors/build/cache/each-of.ts";
import { withEmpty } from "#doors/build/cache/empty-blobs.ts";
import type { ExecutionPorts } from "./execution-ports.ts";
import { refusalOfWork } from "./execution-refusals.ts";
import { cachedResponse, readResponse } from "./execution-response.ts";
import { operationName, parseCachedName, parseCollection, parseOperationName } from "./operation-names.ts";
import { door, readSpec, type ActionSpec } from "#doors/build/plan.ts";
import { invalid, notFound } from "#doors/build/refusals.ts";
import { readOutcome } from "#doors/build/run/outcome.ts";
import { ExecutionFollower, viewCached, viewOperation } from "#doors/build/view.ts";

export type Found = {
  readonly jobId: string;
  readonly name: string;
  readonly job: Job;
  /** Only while it is live: history does not keep it. */
  readonly spec: ActionSpec | undefined;
};

/** Which jobs are searched, and how much of them is read. */
type Among = { readonly doors: readonly string[]; readonly tasksMax: number };

const operations: Among = { doors: [door], tasksMax: 10 };

const pageSizeMax = 100;
const readAtOnceMax = 8;
const noInline = { inlineStdout: false, inlineStderr: false, inlineOutputFiles: [] } as const;

export class OperationsService {
  readonly #ports: BuildPorts;
  readonly #execution: Pick<ExecutionPorts, "client" | "leaving">;
  readonly #results: Pick<ActionCacheService, "get">;

  constructor(
    ports: BuildPorts,
    execution: Pick<ExecutionPorts, "client" | "leaving">,
    results: Pick<ActionCacheService, "get">,
  ) {
    this.#ports = ports;
    this.#execution = execution;
    this.#results = results;
  }

  async get({ name }: GetOperationRequest, call: BuildCall): Promise<Operation> {
    needToFollow(call.caller);
    return (await this.cached(name, call)) ?? (await this.read(await this.find(name, call), call));
  }

  async list(request: ListOperationsRequest, call: BuildCall): Promise<ListOperationsResponse> {
    needToFollow(call.caller);
    if (request.filter !== "") throw invalid("no filter is understood here");
    if (request.pageSize < 0) throw invalid(`page_size ${request.pageSize} is negative`);
    const instance = servedInstance(parseCollection(request.name), this.#ports.settings);
    const { client } = this.#execution;
    const { tenant } = call.caller;
    const limit = Math.min(request.pageSize || pageSizeMax, pageSizeMax);
    const cursor = request.pageToken === "" ? {} : { cursor: request.pageToken };
    const page = await client.jobs({ tenant, door, limit, ...cursor }, { signal: call.signal });
    const read = await eachOf(page.jobs, readAtOnceMax, ({ jobId }) => this.#listed(jobId, instance, call));
    return { operations: read.flat(), nextPageToken: page.cursor ?? "" };
  }

  /** REAPI-67: cancelling an operation that has ended does nothing. */
  async cancel({ name }: CancelOperationRequest, call: BuildCall): Promise<Empty> {
    if (!call.caller.may("work.cancel")) need(call.caller, "build.execute");
    if (await this.cached(name, call)) return {};
    const { jobId, job } = await this.find(name, call);
    if (job.view.endedAtMs !== undefined) return {};
    try {
      await this.#execution.client.cancel(jobId, `cancelled by ${call.caller.principal}`, { signal: call.signal });
    } catch (error) {
      if (!isRejected(error, "job-ended") && !isRejected(error, "job-unknown")) throw refusalOfWork(error);
    }
    return {};
  }

  async delete(): Promise<never> {
    throw new GrpcError(grpcCode.unimplemented, "operations are forgotten by themselves, after a while");
  }

  /** Until it has ended, or for as long as the caller says. */
  async wait({ name, timeout }: WaitOperationRequest, call: BuildCall): Promise<Operation> {
    needToFollow(call.caller);
    const cached = await this.cached(name, call);
    if (cached) return cached;
    const found = await this.find(name, call);
    const { leaving, client } = this.#execution;
    const forMs = timeout ? timeout.seconds * 1_000 + timeout.nanos / 1e6 : waitMsDefault;
    const enough = new AbortController();
    const cancel = this.#ports.clock.after(Math.max(0, Math.min(forMs, waitMsMax)), () => enough.abort());
    const signal = AbortSignal.any([enough.signal, call.signal, ...(leaving ? [leaving] : [])]);
    try {
      if (found.job.view.endedAtMs === undefined)
        for await (const message of client.watch(found.jobId, signal)) if (message.kind === "end") break;
    } catch (error) {
      if (!enough.signal.aborted) throw refusalOfWork(error);
    } finally {
      cancel();
    }
    return await this.read(await this.find(name, call), call);
  }

  /** REAPI-50: an operation from the cache can be queried as long as the result exists. Undefined for names of jobs. */
  async cached(name: string, call: BuildCall): Promise<Operation | undefined> {
    const { instance: instanceName, action = "" } = parseCachedName(name) ?? {};
    if (instanceName === undefined) return undefined;
    const { fn = "sha256" } = parseDigest(action) ?? {};
    const lookup = { instanceName, actionDigest: wireOf(action), digestFunction: numberOf(fn), ...noInline };
    return viewCached(name, action, cachedResponse(await this.#results.get(lookup, call)));
  }

  /** REAPI-50: unknown, expired and foreign operations are not found. */
  async find(name: string, call: BuildCall, { doors, tasksMax }: Among = operations): Promise<Found> {
    const { instance, jobId } = parseOperationName(name);
    servedInstance(instance, this.#ports.settings);
    const missing = notFound(`there is no operation ${name}`);
    let job: Job;
    try {
      job = await this.#execution.client.job(jobId, { tasksMax, signal: call.signal });
    } catch (error) {
      throw isRejected(error, "job-unknown") ? missing : refusalOfWork(error);
    }
    const { view } = job;
    if (view.tenant !== call.caller.tenant || !doors.includes(view.door)) throw missing;
    const spec = readSpec(view.spec);
    const outcome = readOutcome(view.tasks[0]?.result);
    const own = spec?.instance ?? readBuildSpec(view.spec)?.instance ?? outcome?.instance ?? instance;
    if (own !== instance) throw missing;
    const asker = spec?.principal ?? outcome?.principal;
    if (!call.caller.may("work.read") && (view.door !== door || asker !== call.caller.principal)) throw missing;
    return { jobId, name, job, spec };
  }

  /** Its present state. */
  async read({ name, job, spec }: Found, call: BuildCall): Promise<Operation> {
    const follower = new ExecutionFollower();
    follower.hear({ kind: "snapshot", stamp: { epoch: 0, seq: 0 }, view: job.view });
    const action = spec?.action ?? job.view.name.split(" ")[0] ?? "";
    const about = { name, action, queuedAtMs: spec?.queuedAtMs ?? job.view.submittedAtMs };
    const { ended } = follower;
    if (!ended) return viewOperation(about, follower.progress);
    const { fn = "sha256" } = parseDigest(action) ?? {};
    const blobs = withEmpty(storeOf(this.#ports, call).blobs);
    const response = await readResponse(ended, fn, blobs, noInline);
    return viewOperation(about, { stage: Stage.COMPLETED, worker: "" }, response);
  }

  /** An operation whose answer is gone is not listed. */
  async #listed(jobId: string, instance: string, call: BuildCall): Promise<readonly Operation[]> {
    try {
      return [await this.read(await this.find(operationName(instance, jobId), call), call)];
    } catch (error) {
      if (error instanceof GrpcError && error.code === grpcCode.notFound) return [];
      throw error;
    }
  }
}

const waitMsDefault = 60_000;
const waitMsMax = 3_600_000;
