/**
 * Execute and WaitExecution: a request becomes a job, and its clients follow the progress.
 *
 * E3 The job is what lasts: calls come and go, at any node, and a job without waiting clients ends after a grace
 * period.
 */
import { randomUUID } from "node:crypto";
import { parseDigest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { UntilLeaving } from "#base/calls/until-leaving.ts";
import { grpcCode } from "#grpc/status.ts";
import { isRejected } from "#shard/work/rejected.ts";
import {
  ExecutionStage_Value as Stage,
  type ExecuteRequest,
  type ExecuteResponse,
  type WaitExecutionRequest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Operation } from "#wire/generated/google/longrunning/operations.ts";
import { Missed, type ActionCacheService } from "#doors/build/cache/action-cache.ts";
import { need, needToFollow } from "#doors/build/caller.ts";
import { digestOfWire, functionOf } from "#doors/build/digests.ts";
import { servedInstance, storeOf, type BuildCall, type BuildPorts } from "#doors/build/call.ts";
import { withEmpty } from "#doors/build/cache/empty-blobs.ts";
import { wholeAction } from "./execution-inputs.ts";
import type { ExecutionPorts } from "./execution-ports.ts";
import { refusalOfWork } from "./execution-refusals.ts";
import { cachedResponse, readResponse, type Inline } from "./execution-response.ts";
import { cachedName, operationName } from "./operation-names.ts";
import { OperationsService, type Found } from "./operations.ts";
import { poolLabel } from "./plan-platform.ts";
import { planAction, planJoin, planOrder, type ActionSpec, type ActionOrder } from "#doors/build/plan.ts";
import { notFound } from "#doors/build/refusals.ts";
import type { RanBecause } from "#doors/build/run/outcome.ts";
import { aboutSpec, ExecutionFollower, viewCached, viewOperation } from "#doors/build/view.ts";
import { failed, hopeless as hopelessly, isAbandoned, responseOf } from "./view-failure.ts";

const noInline: Inline = { inlineStdout: false, inlineStderr: false, inlineOutputFiles: [] };

export class ExecutionService {
  readonly #ports: BuildPorts;
  readonly #execution: ExecutionPorts;
  readonly #results: ActionCacheService;
  readonly #operations: OperationsService;
  readonly #untilLeaving: UntilLeaving;

  constructor(ports: BuildPorts, execution: ExecutionPorts, results: ActionCacheService) {
    this.#ports = ports;
    this.#execution = execution;
    this.#results = results;
    this.#operations = new OperationsService(ports, execution, results);
    this.#untilLeaving = new UntilLeaving(execution.leaving);
  }

  get operations(): OperationsService {
    return this.#operations;
  }

  async *execute(request: ExecuteRequest, call: BuildCall): AsyncGenerator<Operation> {
    const { caller } = call;
    need(caller, "build.execute");
    const instance = servedInstance(request.instanceName, this.#ports.settings);
    const action = digestOfWire(request.actionDigest, functionOf(request.digestFunction), "action_digest");
    const { fn = "sha256" } = parseDigest(action) ?? {};
    const { response, because, version } = await this.#cached(request, call);
    if (response) return yield viewCached(cachedName(instance, action), action, response);
    const spec = await this.#plan({ instance, action, fn, because }, call);
    const priority = request.executionPolicy?.priority ?? 0;
    const subscriber = randomUUID();
    const known = (): Promise<ExecuteResponse | undefined> => this.#cachedSince(version, request, call);
    const submitted = await this.#submit(spec, { tenant: caller.tenant, priority, subscriber }, { known, call });
    if (typeof submitted !== "string") return yield viewCached(cachedName(instance, action), action, submitted);
    yield* this.#follow({ jobId: submitted, spec, subscriber, inline: request }, call);
  }

  async *wait({ name }: WaitExecutionRequest, call: BuildCall): AsyncGenerator<Operation> {
    needToFollow(call.caller);
    const cached = await this.#operations.cached(name, call);
    if (cached) return yield cached;
    const found = await this.#operations.find(name, call);
    const ended = found.job.view.endedAtMs !== undefined;
    if (isAbandoned(found.job.view)) throw notFound(`operation ${name} was cancelled: no client waited for it`);
    if (ended || !found.spec) return yield await this.#operations.read(found, call);
    const { jobId, spec } = found;
    const subscriber = await this.#join(found, call);
    yield* this.#follow({ jobId, spec, subscriber, inline: noInline }, call);
  }

  /** REAPI-68: only a result that was there before is reported as cached. */
  async #cached(request: ExecuteRequest, call: BuildCall): Promise<Looked> {
    if (request.skipCacheLookup) return { because: { kind: "skip-cache-lookup" } };
    if (!call.caller.may("action-cache.read")) return { because: { kind: "may-not-read" } };
    const found = await this.#results.look(request, call);
    if (found instanceof Missed) return { because: found.reason, version: found.version };
    return { response: cachedResponse(found) };
  }

  /**
   * A job's result is known before the job ends, and an equal order joins the job until then. So a lookup right before
   * submitting avoids starting an action that was finished while its inputs were checked.
   */
  async #cachedSince(version: number | undefined, request: ExecuteRequest, call: BuildCall) {
    if (version === undefined || !(await this.#results.isNewer(request, version, call))) return undefined;
    return (await this.#cached(request, call)).response;
  }

  async #plan(
    order: Pick<ActionOrder, "instance" | "action" | "fn" | "because">,
    call: BuildCall,
  ): Promise<ActionSpec> {
    const blobs = withEmpty(storeOf(this.#ports, call).blobs);
    const { trees, settings } = this.#execution;
    const { principal, tenant } = call.caller;
    const { action, command } = await wholeAction(order.action, order.fn, blobs, trees.forTenant(tenant));
    const nowMs = this.#ports.clock.wallMs();
    const about = { ...order, principal, metadata: call.metadata, nowMs, unique: randomUUID() };
    return planAction(about, action, command, settings);
  }

  /** A node that is cut off reaches neither the index nor the shards, and should not reach the shards first. */
  async #whenAnswered<T>(ask: () => Promise<T>, { signal }: BuildCall): Promise<T | undefined> {
    const { clock } = this.#ports;
    for (const untilMs = clock.monotonicMs() + namesAwaitedMs; clock.monotonicMs() < untilMs;)
      try {
        return await ask();
      } catch (error) {
        nothingIfUnavailable(error);
        await clock.sleep(namesAgainMs, signal);
      }
    return undefined;
  }

  /**
   * The job, or the result if that is known by now. Looked up before every try: a try whose answer was lost may have
   * started a job that has ended since.
   */
  async #submit(
    spec: ActionSpec,
    wishes: Parameters<typeof planOrder>[1],
    { known, call }: { readonly known: () => Promise<ExecuteResponse | undefined>; readonly call: BuildCall },
  ): Promise<string | ExecuteResponse> {
    // Running it twice is a waste, but refusing it because the lookup failed would be worse.
    let response = await known().catch(nothingIfUnavailable);
    if (response) return response;
    const again = async (): Promise<void> => {
      call.signal.throwIfAborted();
      response = await this.#whenAnswered(known, call);
      if (response) throw new Fault("stale", "submit action", { why: "its result is known by now" });
    };
    const { here } = this.#execution;
    try {
      // Not aborted with the call: a caller that is gone counts as subscribed until it leaves, and only the answer says
      // to which job.
      return (await this.#execution.client.submit(planOrder(spec, { ...wishes, here, trace: call.trace }), { again }))
        .jobId;
    } catch (error) {
      if (response) return response;
      throw refusalOfWork(error);
    }
  }

  /** A client that waits again is subscribed again; a job that has just ended is reported as it is. */
  async #join({ spec, jobId, job }: Found, call: BuildCall): Promise<string> {
    const subscriber = randomUUID();
    // A caller that may only read keeps no job alive.
    if (!spec || !call.caller.may("build.execute")) return subscriber;
    const { tenant, priority } = job.view;
    const again = async (): Promise<void> => call.signal.throwIfAborted();
    try {
      const joined = await this.#execution.client.join(planJoin(spec, { tenant, priority, subscriber }), { again });
      // An equal job has started since, and this client does not wait for it.
      if (joined && joined.jobId !== jobId) this.#leave(joined.jobId, subscriber);
    } catch (error) {
      // A caller that gives up before the answer comes may be subscribed by then.
      this.#leave(jobId, subscriber);
      throw refusalOfWork(error);
    }
    return subscriber;
  }

  async *#follow(waiting: Waiting, call: BuildCall): AsyncGenerator<Operation> {
    const { client, leaving } = this.#execution;
    const { jobId, spec, subscriber, inline } = waiting;
    const about = aboutSpec(operationName(spec.instance, jobId), spec);
    const follower = new ExecutionFollower();
    const held = this.#untilLeaving.hold(call.signal);
    try {
      yield viewOperation(about, follower.progress);
      for await (const message of client.watch(jobId, held.signal)) {
        const isNews = follower.hear(message);
        if (follower.ended) break;
        const hopeless = message.kind === "heartbeat" ? await this.#hopeless(waiting, follower, call) : undefined;
        if (hopeless && !(await this.#giveUp(waiting, hopeless, call)))
          return yield viewOperation(about, follower.progress, hopeless);
        // Proxies between here and the client must not mistake silence for a dead connection.
        if (isNews || message.kind === "heartbeat") yield viewOperation(about, follower.progress);
      }
      const { ended } = follower;
      if (!ended) throw new Fault("unavailable", "follow action", { job: jobId, why: "the watch ended early" });
      const blobs = withEmpty(storeOf(this.#ports, call).blobs);
      const response = await readResponse(ended, spec.fn, blobs, inline);
      this.#noteStored(spec, response, call);
      yield viewOperation(about, follower.progress, response);
    } finally {
      held[Symbol.dispose]();
      // Clients that are sent away come back, and must find the job alive.
      if (!follower.ended && !leaving?.aborted) this.#leave(jobId, subscriber);
    }
  }

  /** So that `why` can compare the next action of its target with it. */
  #noteStored(
    { instance, action, doNotCache, target, mnemonic }: ActionSpec,
    { result, status }: ExecuteResponse,
    { caller }: BuildCall,
  ): void {
    const { seen, report } = this.#ports;
    if (!seen || target === "" || doNotCache || result?.exitCode !== 0 || (status?.code ?? 0) !== 0) return;
    seen
      .stored(caller.tenant, instance, action, { target, mnemonic })
      .catch((error: unknown) => report("note an action", error));
  }

  /**
   * REAPI-57: an action that no worker can run is refused, with what the closest worker lacks. If there are no workers
   * at all it may wait, and also for a pool that is declared to have none at times.
   */
  async #hopeless(
    { jobId, spec }: Waiting,
    { progress }: ExecutionFollower,
    { caller: { tenant } }: BuildCall,
  ): Promise<ExecuteResponse | undefined> {
    const { client, settings } = this.#execution;
    if (progress.stage !== Stage.QUEUED || this.#ports.clock.wallMs() - spec.queuedAtMs < settings.noWorkerMs)
      return undefined;
    const [why] = await client.why(jobId, { of: { tenant } }).catch(() => []);
    if (why?.because.kind !== "no-executor" || why.because.nearest === undefined) return undefined;
    const { nearest, missing } = why.because;
    if (settings.pools.some((pool) => missing.includes(poolLabel(pool)))) return undefined;
    const message = `${hopelessly}the nearest, ${nearest}, does not offer ${missing.join(", ")}`;
    return responseOf(failed(grpcCode.failedPrecondition, message));
  }

  /**
   * Ends the job if no other client waits for it, so that later requests get the same answer. Returns whether it ended,
   * which is then reported.
   */
  async #giveUp({ jobId }: Waiting, { status }: ExecuteResponse, { caller, signal }: BuildCall): Promise<boolean> {
    // A caller that may only read ends nothing.
    if (!caller.may("build.execute")) return false;
    const { client } = this.#execution;
    try {
      const { view } = await client.job(jobId, { tasksMax: 0, signal });
      if (view.subscribers > 1) return false;
      await client.cancel(jobId, status?.message ?? "", { signal });
      return true;
    } catch (error) {
      if (!isRejected(error)) throw error;
      return isRejected(error, "job-ended") || isRejected(error, "job-unknown");
    }
  }

  #leave(jobId: string, subscriber: string): void {
    this.#execution.client
      .leave(jobId, subscriber)
      .catch((error: unknown) => this.#ports.report("leave an action", error));
  }
}

const namesAwaitedMs = 30_000;
const namesAgainMs = 200;

function nothingIfUnavailable(error: unknown): undefined {
  if (!isFault(error, "unavailable")) throw error;
}

type Looked = {
  readonly response?: ExecuteResponse;
  readonly because?: RanBecause;
  /** The version of the entry that could not be served, 0 if there was none; left out if there was no lookup. */
  readonly version?: number;
};

type Waiting = {
  readonly jobId: string;
  readonly spec: ActionSpec;
  readonly subscriber: string;
  readonly inline: Inline;
};
