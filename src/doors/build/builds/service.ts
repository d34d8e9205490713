/** Builds: submit once, get, list, watch and cancel. Each tenant sees only its own. */
import { randomUUID } from "node:crypto";
import { digestSizeBytes, parseDigest, type Digest } from "#base/digest.ts";
import { UntilLeaving } from "#base/calls/until-leaving.ts";
import { isFault } from "#base/fault.ts";
import { parseJob } from "#base/ids.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import type { JobPhase } from "#kernel/model/model.ts";
import type { JobView } from "#kernel/read/query.ts";
import { isRejected } from "#shard/work/rejected.ts";
import {
  Build,
  RecordedBuild,
  type ActionReport,
  type BuildStatus,
  type CancelBuildRequest,
  type CancelBuildResponse,
  type GetActionRequest,
  type GetBuildRequest,
  type ListBuildsRequest,
  type ListBuildsResponse,
  type SubmitBuildRequest,
  type SubmitBuildResponse,
  type WatchBuildRequest,
  type WatchBuildResponse,
} from "#wire/generated/millrace/build/v1/builds.ts";
import { decode, encode } from "#wire/message.ts";
import { MissingInputs } from "#worker/stage/tree.ts";
import { need } from "#doors/build/caller.ts";
import { servedInstance, type BuildCall, type BuildPorts } from "#doors/build/call.ts";
import { withEmpty } from "#doors/build/cache/empty-blobs.ts";
import type { ExecutionPorts } from "#doors/build/execute/execution-ports.ts";
import { refusalOfWork } from "#doors/build/execute/execution-refusals.ts";
import { invalid, notFound } from "#doors/build/refusals.ts";
import { reportOf } from "./action-report.ts";
import { BuildFollower } from "./follow-build.ts";
import { missingOf } from "./given-blobs.ts";
import { buildLimits } from "./limits.ts";
import { buildsDoor, planBuild, readBuildSpec, readJobName, recordBuild } from "./plan-build.ts";
import { RecordedBuilds, type Recorded } from "./recorded.ts";
import { countsOf, phaseOf, viewActions, viewLine } from "./view-build.ts";

export type BuildsCall = Pick<BuildCall, "caller" | "signal">;
export type BuildsPorts = Pick<BuildPorts, "store" | "clock" | "settings"> & { readonly execution: ExecutionPorts };

/** All actions, and one planning task for each stage. */
const tasksMax = 10_000;
const pageSizeMax = 100;

type Found = { readonly buildId: string; readonly view: JobView; readonly recorded: Recorded | undefined };

export class BuildsService {
  readonly #ports: BuildsPorts;
  readonly #builds = new RecordedBuilds();
  readonly #untilLeaving: UntilLeaving;

  constructor(ports: BuildsPorts) {
    this.#ports = ports;
    this.#untilLeaving = new UntilLeaving(ports.execution.leaving);
  }

  async submit(request: SubmitBuildRequest, call: BuildsCall): Promise<SubmitBuildResponse> {
    const { caller, signal } = call;
    const { clock, settings, execution } = this.#ports;
    need(caller, "work.submit");
    const { priority, requestId } = checkedWishes(request);
    const blobs = this.#blobs(call);
    const build = await buildIn(request, blobs);
    servedInstance(build.instanceName, settings);
    const { tenant, principal } = caller;
    const wishes = { tenant, principal, mayReadCache: caller.may("action-cache.read") };
    const recorded = { ...recordBuild(build, wishes, execution.settings), build };
    const missing = await missingOf(build, blobs);
    if (missing.length > 0) throw new MissingInputs(missing);
    const bytes = encode(RecordedBuild, recorded);
    if (bytes.length > 2 * buildLimits.buildBytesMax) throw invalid("the build is too large");
    const recordedAs = await this.#keep(bytes, blobs, build.deadlineMs || buildLimits.deadlineMsDefault);
    const about = { tenant, requestId, priority, nowMs: clock.wallMs() };
    const order = planBuild(recorded, recordedAs, about, execution.settings);
    try {
      const { jobId, created } = await execution.client.submit(order, { signal });
      return { buildId: jobId, created };
    } catch (error) {
      if (!isRejected(error, "key-reused")) throw refusalOfWork(error);
      throw new GrpcError(grpcCode.alreadyExists, `another build was submitted as ${requestId}`, [], [], error);
    }
  }

  /** Its stages need it until the last of them is planned, whatever else is evicted in the meantime. */
  async #keep(bytes: Buffer, blobs: BlobStore, forMs: number): Promise<Digest> {
    const digest = digestOf(bytes);
    await blobs.write(digest, bytes);
    const pin = await blobs.pin([digest], forMs);
    if ("missing" in pin) throw new MissingInputs(pin.missing);
    return digest;
  }

  async get({ buildId, withActions }: GetBuildRequest, call: BuildsCall): Promise<BuildStatus> {
    const { view, recorded } = await this.find(buildId, call);
    const actions = viewActions(buildId, view, recorded);
    return { ...viewLine(buildId, view), counts: countsOf(actions), actions: withActions ? actions : [] };
  }

  async getAction({ buildId, key }: GetActionRequest, call: BuildsCall): Promise<ActionReport> {
    const { view, recorded } = await this.find(buildId, call);
    const status = viewActions(buildId, view, recorded).find((action) => action.key === key);
    if (!status) throw notFound(`build ${buildId} has no action ${JSON.stringify(key.slice(0, 200))}`);
    const task = view.tasks.find((one) => !one.planning && one.key === key);
    return await reportOf(status, task, this.#blobs(call));
  }

  async list({ pageSize, pageToken }: ListBuildsRequest, call: BuildsCall): Promise<ListBuildsResponse> {
    need(call.caller, "work.read");
    if (pageSize < 0) throw invalid(`page_size ${pageSize} is negative`);
    const { tenant } = call.caller;
    const { client } = this.#ports.execution;
    const limit = Math.min(pageSize || pageSizeMax, pageSizeMax);
    const cursor = pageToken === "" ? {} : { cursor: pageToken };
    const page = await client.jobs({ tenant, door: buildsDoor, limit, ...cursor }, { signal: call.signal });
    const builds = page.jobs.map(({ jobId, ...line }) => viewLine(jobId, { ...line, phase: line.phase as JobPhase }));
    return { builds, nextPageToken: page.cursor ?? "" };
  }

  async *watch({ buildId }: WatchBuildRequest, call: BuildsCall): AsyncGenerator<WatchBuildResponse> {
    const { client } = this.#ports.execution;
    const { view, recorded } = await this.find(buildId, call);
    const follower = new BuildFollower(buildId, view, recorded);
    yield { build: follower.build, changed: follower.takeChanged() };
    if (follower.hasEnded) return;
    using held = this.#untilLeaving.hold(call.signal);
    for await (const message of client.watch(buildId, held.signal)) {
      let mustLook = message.kind === "snapshot";
      if (message.kind === "events")
        for (const event of message.events) if (follower.hear(event) === "look") mustLook = true;
      if (mustLook) follower.look((await this.find(buildId, call)).view);
      const changed = follower.takeChanged();
      // Proxies between here and the client must not mistake silence for a dead connection.
      const isNews = changed.length > 0 || message.kind === "heartbeat" || follower.hasEnded;
      if (isNews && message.kind !== "end") yield { build: follower.build, changed };
    }
  }

  async cancel({ buildId, reason }: CancelBuildRequest, call: BuildsCall): Promise<CancelBuildResponse> {
    const { caller, signal } = call;
    need(caller, "work.cancel");
    const { view } = await this.find(buildId, call, 0);
    if (view.endedAtMs !== undefined) return { phase: phaseOf[view.phase], cancelled: false };
    const why = `cancelled by ${caller.principal}${reason === "" ? "" : `: ${reason.slice(0, 500)}`}`;
    try {
      const phase = await this.#ports.execution.client.cancel(buildId, why, { signal, hard: true });
      return { phase: phaseOf[phase], cancelled: true };
    } catch (error) {
      if (!isRejected(error, "job-ended") && !isRejected(error, "job-unknown")) throw refusalOfWork(error);
      return { phase: phaseOf[(await this.find(buildId, call, 0)).view.phase], cancelled: false };
    }
  }

  /** An unknown, expired or foreign build is not found. */
  async find(buildId: string, call: BuildsCall, shown = tasksMax): Promise<Found> {
    need(call.caller, "work.read");
    const missing = notFound(`there is no build ${JSON.stringify(buildId.slice(0, 100))}`);
    if (!parseJob(buildId)) throw missing;
    const { client } = this.#ports.execution;
    try {
      const { view } = await client.job(buildId, { tasksMax: shown, signal: call.signal });
      if (view.tenant !== call.caller.tenant || view.door !== buildsDoor) throw missing;
      return { buildId, view, recorded: shown === 0 ? undefined : await this.recorded(view, call) };
    } catch (error) {
      throw isRejected(error, "job-unknown") ? missing : refusalOfWork(error);
    }
  }

  /** Undefined when it ended so long ago that it is no longer kept. */
  async recorded({ spec, name }: JobView, call: BuildsCall): Promise<Recorded | undefined> {
    const digest = readBuildSpec(spec)?.recorded ?? readJobName(name).recorded;
    try {
      return await this.#builds.read(call.caller.tenant, digest, this.#blobs(call));
    } catch (error) {
      if (isFault(error, "not-found")) return undefined;
      throw error;
    }
  }

  #blobs({ caller }: BuildsCall): BlobStore {
    return withEmpty(this.#ports.store.forTenant(caller.tenant).blobs);
  }
}

function checkedWishes({ priority, requestId }: SubmitBuildRequest) {
  if (Math.abs(priority) > 100) throw invalid(`priority ${priority} is not from -100 to 100`);
  if (requestId.length > buildLimits.requestIdLengthMax || /\p{Cc}/u.test(requestId))
    throw invalid(`a request_id has at most ${buildLimits.requestIdLengthMax} characters, and no control characters`);
  return { priority, requestId: requestId === "" ? randomUUID() : requestId };
}

async function buildIn({ what }: SubmitBuildRequest, blobs: BlobStore): Promise<Build> {
  if (!what) throw invalid("no build is given");
  if (what.kind === "build") return what.value;
  if (parseDigest(what.value)?.fn !== "sha256") throw invalid("build_blob is not a digest, which is HASH/SIZE");
  if (digestSizeBytes(what.value) > buildLimits.buildBytesMax)
    throw invalid(`a build has at most ${buildLimits.buildBytesMax} bytes`);
  try {
    return decode(Build, Uint8Array.from(await wholeBlob(blobs, what.value)));
  } catch (error) {
    if (isFault(error, "not-found")) throw new MissingInputs([what.value]);
    throw isFault(error, "invalid") ? invalid(`build_blob cannot be read: ${error.message}`) : error;
  }
}
