/** By default, a node lets callers on its machine use the cache and run actions without credentials; no more. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { Random } from "#base/random.ts";
import { grpcCode, isGrpcError } from "#grpc/status.ts";
import { createClient, type WorkClient } from "#shard/client/client.ts";
import { createGrpcTransport, type GrpcTransport } from "#shard/transport/grpc-transport.ts";
import { createRouter } from "#shard/router/router.ts";
import { isFault } from "#base/fault.ts";
import {
  ActionCache,
  ActionResult,
  Capabilities,
  ContentAddressableStorage,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { Operations } from "#wire/generated/google/longrunning/operations.ts";
import { Builds } from "#wire/generated/millrace/build/v1/builds.ts";
import { encode } from "#wire/message.ts";
import { resultPrinting } from "#doors/build/testing/build.ts";
import { Bench, Lab, wireDigest } from "#e2e/node/build/execution-lab.ts";
import { orderFromCommand } from "#app/job-order.ts";
import { systemClock as clock } from "#door/system-clock.ts";

const skip = process.platform !== "linux" && "needs linux: actions";
const common = { instanceName: "", digestFunction: 0 } as const;
const inline = { inlineStdout: true, inlineStderr: false, inlineOutputFiles: [] } as const;
const never = new AbortController().signal;
const denied = (error: unknown): boolean =>
  isGrpcError(error, grpcCode.permissionDenied) ||
  (isFault(error) && error.facts["status"] === grpcCode.permissionDenied);

describe("a caller without credentials on a node with default settings", { skip, timeout: 60_000 }, () => {
  let lab: Lab;
  let anybody: Bench;
  let owner: Bench;
  const transports: GrpcTransport[] = [];

  before(async () => {
    lab = await Lab.open({ worker: { slots: 2 } });
    anybody = new Bench(lab.client());
    owner = new Bench(lab.client(lab.owner));
  });
  after(async () => {
    await Promise.all(transports.map((transport) => transport.close()));
    await lab[Symbol.asyncDispose]();
  });

  function workOf(token?: string): WorkClient {
    const metadata = token === undefined ? [] : ([["authorization", `Bearer ${token}`]] as const);
    const transport = createGrpcTransport({ clock, via: "router", metadata });
    transports.push(transport);
    const address = `grpc:127.0.0.1:${lab.node?.edgePorts[0]}`;
    const ownerships = async () => (await lab.node?.journal.ownerships())?.map((one) => ({ ...one, address })) ?? [];
    const random = new Random(randomUUID());
    const router = createRouter({ ownerships, transport, clock, random, options: { deadlineMs: 5_000 } });
    return createClient({ router, directory: lab.node?.journal as never, random });
  }

  const http = async (method: string, path: string, init: RequestInit = {}): Promise<number> => {
    const response = await fetch(`http://127.0.0.1:${lab.node?.edgePorts[0]}${path}`, { method, ...init });
    await response.arrayBuffer();
    return response.status;
  };

  test("runs actions, and uses the cache over gRPC", async () => {
    const { response, name } = await anybody.execute(await anybody.sh(`echo hello # ${randomUUID()}`));
    equal(Buffer.from(response.result?.stdoutRaw ?? "").toString(), "hello\n");
    equal((await anybody.wait(name)).response.result?.exitCode, 0, "its own, when it has ended");
    const { executionCapabilities, cacheCapabilities } = await anybody.grpc.unary(
      Capabilities.methods.getCapabilities,
      { instanceName: "" },
    );
    ok(executionCapabilities?.execEnabled && cacheCapabilities?.actionCacheUpdateCapabilities?.updateEnabled);
    const actionDigest = await anybody.put(randomUUID());
    const actionResult: ActionResult = resultPrinting("made elsewhere");
    await anybody.grpc.unary(ActionCache.methods.updateActionResult, { ...common, actionDigest, actionResult });
    const read = await anybody.grpc.unary(ActionCache.methods.getActionResult, { ...common, actionDigest, ...inline });
    equal(Buffer.from(read.stdoutRaw).toString(), "made elsewhere");
    const { missingBlobDigests } = await anybody.grpc.unary(ContentAddressableStorage.methods.findMissingBlobs, {
      ...common,
      blobDigests: [actionDigest],
    });
    deepEqual(missingBlobDigests, []);
  });

  test("uses the caches of build tools over HTTP", async () => {
    const { hash } = wireDigest(Buffer.from("a blob"));
    equal(await http("PUT", `/cas/${hash}`, { body: "a blob" }), 200);
    equal(await http("GET", `/cas/${hash}`), 200);
    const result = encode(ActionResult, resultPrinting("x"));
    equal(await http("PUT", `/ac/${hash}`, { body: Buffer.from(result) }), 200);
    equal(await http("GET", `/ac/${hash}`), 200);
  });

  test("follows and cancels what it started, and nothing else", async () => {
    const begun = async (bench: Bench): Promise<string> => {
      for await (const { name } of bench.stream(await bench.sh(`sleep 20 # ${randomUUID()}`))) return name;
      return "";
    };
    const [mine, theirs] = [await begun(anybody), await begun(owner)];
    const { getOperation, listOperations, cancelOperation, waitOperation } = Operations.methods;
    equal((await anybody.grpc.unary(getOperation, { name: mine })).done, false);
    const notThere = (error: unknown): boolean => isGrpcError(error, grpcCode.notFound);
    await rejects(anybody.grpc.unary(getOperation, { name: theirs }), notThere);
    await rejects(anybody.grpc.unary(cancelOperation, { name: theirs }), notThere);
    await rejects(anybody.grpc.unary(waitOperation, { name: theirs }), notThere);
    await rejects(anybody.wait(theirs), notThere);
    const asked = { name: "operations", filter: "", pageSize: 100, pageToken: "" };
    const listed = (await anybody.grpc.unary(listOperations, asked)).operations.map(({ name }) => name);
    ok(listed.includes(mine) && !listed.includes(theirs), listed.join());
    const all = (await owner.grpc.unary(listOperations, asked)).operations.map(({ name }) => name);
    ok(all.includes(mine) && all.includes(theirs), "the operator sees both");
    await anybody.grpc.unary(cancelOperation, { name: mine });
    await owner.grpc.unary(cancelOperation, { name: theirs });
  });

  test("submits no work and no builds, takes none, and reads none", async () => {
    const work = workOf();
    const order = orderFromCommand(["true"], { tenant: "default" });
    await rejects(work.submit(order), denied);
    const { jobId } = await workOf(lab.owner).submit(order);
    await rejects(work.job(jobId), denied);
    await rejects(work.jobs({ limit: 10 }), denied);
    await rejects(work.cancel(jobId, "mine"), denied);
    await rejects(work.reserve(0, { executor: "anonymous", offers: ["door=shell"], count: 1 }), denied);
    await rejects(async () => {
      for await (const _message of work.watch(jobId, never));
    }, denied);
    const what = { kind: "buildBlob", value: `${"0".repeat(64)}/1` } as const;
    await rejects(anybody.grpc.unary(Builds.methods.submitBuild, { requestId: "", priority: 0, what }), denied);
  });

  test("administers nothing and reads nothing of the node except its health", async () => {
    for (const path of ["/livez", "/readyz"]) equal(await http("GET", path), 200, path);
    const refused: readonly (readonly [string, string])[] = [
      ["GET", "/metrics"],
      ["GET", "/peers"],
      ["GET", "/v1/node/drain"],
      ["POST", "/v1/node/drain"],
      ["POST", "/v1/session/link"],
      ["GET", "/v1/build-cache/stat"],
      ["POST", "/v1/build-cache/gc?downTo=0"],
      ["GET", "/v1/builds"],
      ["GET", `/v1/why?of=j0-1`],
    ];
    for (const [method, path] of refused) equal(await http(method, path), 403, `${method} ${path}`);
    const headers = { authorization: `Bearer ${lab.owner}` };
    for (const path of ["/metrics", "/v1/node/drain", "/v1/build-cache/stat"])
      equal(await http("GET", path, { headers }), 200, path);
  });
});
