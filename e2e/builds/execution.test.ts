/** The rules of remote execution (docs/reference/reapi.md), by their numbers, against a whole node. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { detailsOf, grpcCode, GrpcError, isGrpcError } from "#grpc/status.ts";
import {
  ActionCache,
  ActionResult,
  Capabilities,
  ContentAddressableStorage,
  ExecutionStage_Value as Stage,
  type Digest,
  type ExecuteResponse,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { Operations } from "#wire/generated/google/longrunning/operations.ts";
import { PreconditionFailure, RetryInfo } from "#wire/generated/google/rpc/error_details.ts";
import type { Status } from "#wire/generated/google/rpc/status.ts";
import { decode } from "#wire/message.ts";
import { until } from "#testing/until.ts";
import { Bench, Lab, metadataOf, responseOf, secrets, tokensFor } from "#e2e/node/build/execution-lab.ts";

const isLinux = process.platform === "linux";
const tokens = tokensFor(["member", "action-cache-writer"]);

const asError = (status: Status | undefined): GrpcError =>
  new GrpcError(status?.code ?? 0, status?.message ?? "", status?.details ?? []);
const missingIn = (error: GrpcError): readonly string[] =>
  detailsOf(error, PreconditionFailure)
    .flatMap(({ violations }) => violations)
    .map(({ type, subject }) => (type === "MISSING" ? subject : `${type} ${subject}`))
    .toSorted();
const code = (wanted: number) => (error: unknown) => error instanceof GrpcError && error.code === wanted;
const seconds = (n: number) => ({ seconds: n, nanos: 0 });
/** So that tests do not share cached results. */
const salted = (line: string): string => `${line} # ${randomUUID()}`;

describe("remote execution", { skip: !isLinux && "needs linux: the sandbox", timeout: 200_000 }, () => {
  let lab: Lab;
  let bench: Bench;
  before(async () => {
    lab = await Lab.open({
      edge: { listen: ["127.0.0.1:0"], identity: { tokens } },
      build: {
        ignoreProperties: ["container-image"],
        leaveGrace: "1s",
        noWorkerWithin: "1s",
        actionTimeoutMax: "1h",
        pools: ["tide"],
      },
      worker: { slots: 4, labels: ["gpu=yes"] },
    });
    bench = new Bench(lab.client(secrets.mill));
  });
  after(async () => await lab[Symbol.asyncDispose]());

  const bytes = async (digest: Digest | undefined): Promise<Buffer> => {
    const { responses } = await bench.grpc.unary(ContentAddressableStorage.methods.batchReadBlobs, {
      instanceName: "",
      digests: digest ? [digest] : [],
      acceptableCompressors: [],
      digestFunction: 0,
    });
    return Buffer.from(responses[0]?.data ?? "");
  };
  const text = async (digest: Digest | undefined): Promise<string> => (await bytes(digest)).toString();
  const output = async ({ result }: ExecuteResponse, path: string): Promise<string> =>
    text(result?.outputFiles.find((file) => file.path === path)?.digest);
  const cached = async (action: Digest): Promise<boolean> => {
    const asked = { instanceName: "", actionDigest: action, inlineStdout: false, inlineStderr: false };
    const { getActionResult } = ActionCache.methods;
    return await bench.grpc.unary(getActionResult, { ...asked, inlineOutputFiles: [], digestFunction: 0 }).then(
      () => true,
      (error: unknown) => (isGrpcError(error, grpcCode.notFound) ? false : Promise.reject(error as Error)),
    );
  };

  test("capabilities describe execution, for callers that may execute", async () => {
    const { getCapabilities } = Capabilities.methods;
    const { executionCapabilities: mine } = await bench.grpc.unary(getCapabilities, { instanceName: "" });
    equal(mine?.execEnabled, true);
    deepEqual(mine?.executionPriorityCapabilities?.priorities, [{ minPriority: -100, maxPriority: 100 }]);
    ok(mine?.digestFunctions.includes(1));
    const theirs = await lab.client(secrets.reader).unary(getCapabilities, { instanceName: "" });
    equal(theirs.executionCapabilities?.execEnabled, false);
    await rejects(
      new Bench(lab.client(secrets.reader)).execute({ hash: "0".repeat(64), sizeBytes: 1 }),
      code(grpcCode.permissionDenied),
    );
  });

  test("REAPI-48, REAPI-68: an action runs stage by stage, and comes from the cache the second time", async () => {
    const line = salted("cat in/name > out/hello && echo said && echo complained >&2");
    const action = await bench.sh(line, { outputPaths: ["out/hello", "out/not"] }, { "in/name": "miller" });
    const { operations, stages, response, name } = await bench.execute(action);
    deepEqual(response.status?.code ?? 0, 0);
    equal(response.cachedResult, false);
    equal(stages[0], Stage.QUEUED);
    equal(stages.at(-1), Stage.COMPLETED);
    deepEqual(
      stages.toSorted((a, b) => a - b),
      stages,
      "forward only, when nothing goes wrong",
    );
    ok(operations.every((operation) => operation.done === (metadataOf(operation).stage === Stage.COMPLETED)));
    ok(operations.every((operation) => metadataOf(operation).actionDigest?.hash === action.hash));
    match(name, /^operations\/j/);
    equal(await output(response, "out/hello"), "miller");
    deepEqual(
      response.result?.outputFiles.map(({ path }) => path),
      ["out/hello"],
      "78: what is missing is left out",
    );
    equal(Buffer.from(response.result?.stdoutRaw ?? "").toString(), "said\n");
    equal(await text(response.result?.stderrDigest), "complained\n");
    const times = response.result?.executionMetadata;
    const marks = [
      times?.queuedTimestamp,
      times?.workerStartTimestamp,
      times?.inputFetchStartTimestamp,
      times?.inputFetchCompletedTimestamp,
      times?.executionStartTimestamp,
      times?.executionCompletedTimestamp,
      times?.outputUploadStartTimestamp,
      times?.outputUploadCompletedTimestamp,
      times?.workerCompletedTimestamp,
    ].map((at) => (at?.seconds ?? Number.NaN) * 1_000 + (at?.nanos ?? 0) / 1e6);
    deepEqual(
      marks.toSorted((a, b) => a - b),
      marks,
    );
    const again = await bench.execute(action);
    deepEqual([again.response.cachedResult, again.operations.length], [true, 1]);
    equal(await output(again.response, "out/hello"), "miller");
  });

  test("REAPI-61: skip_cache_lookup runs it again, and its result replaces the old one", async () => {
    const action = await bench.sh(salted("date +%N > o"), { outputPaths: ["o"] });
    const first = await output((await bench.execute(action)).response, "o");
    const { response } = await bench.execute(action, { skipCacheLookup: true });
    equal(response.cachedResult, false);
    const second = await output(response, "o");
    ok(first !== second, "it ran twice");
    equal(await output((await bench.execute(action)).response, "o"), second);
  });

  test("REAPI-51: everything that is missing is reported at once, and nothing else", async () => {
    const lacking = async (withheld: readonly string[]): Promise<void> => {
      const own = new Bench(bench.grpc);
      const words = { "a/b/deep": `1${randomUUID()}`, "a/shallow": `2${randomUUID()}`, here: `3${randomUUID()}` };
      const command = { arguments: ["true", randomUUID()] };
      const upload = (part: string): boolean => !withheld.includes(part);
      const action = await own.action(command, words, { upload });
      await rejects(own.execute(action), (error) => {
        ok(isGrpcError(error, grpcCode.failedPrecondition), String(error));
        deepEqual(missingIn(error), [...own.withheld].toSorted());
        return true;
      });
    };
    await lacking(["action"]);
    await lacking(["command"]);
    await lacking(["here", "a/shallow"]);
    await lacking(["command", "a/b/deep"]);
    await lacking(["command", "a/b/", "here"]);
    await lacking([""]);
  });

  test("B5: nothing is revealed of another tenant's inputs, although they were read a moment ago", async () => {
    const line = salted("true");
    const words = { "secret/recipe": randomUUID() };
    await bench.execute(await bench.sh(line, {}, words));
    const stranger = new Bench(lab.client(secrets.bakery));
    // The other tenant knows the root's digest, and has nothing of what is below it.
    const environmentVariables = [{ name: "PATH", value: "/usr/bin:/bin" }];
    const upload = (part: string): boolean => part === "command" || part === "action";
    const command = { arguments: ["/bin/sh", "-c", line], environmentVariables };
    const action = await stranger.action(command, words, { upload });
    await rejects(stranger.execute(action), (error) => {
      ok(isGrpcError(error, grpcCode.failedPrecondition), String(error));
      equal(missingIn(error).length, 1, "the root, and nothing that is in it");
      return true;
    });
  });

  test("REAPI-50: operations are found by name after the node was restarted, at any time", async () => {
    await using own = await Lab.open({ cluster: { shards: 2 } });
    const first = new Bench(own.client());
    const action = await first.sh(salted("echo done > o"), { outputPaths: ["o"] });
    const { name } = await first.execute(action);
    const slow = await first.sh(salted("sleep 2; echo late"), {}, {}, { doNotCache: true });
    const cut = first.execute(slow).catch((error: unknown) => error);
    const { listOperations } = Operations.methods;
    const asked = { name: "", filter: "", pageSize: 10, pageToken: "" };
    let running = "";
    await until("the slow one runs", async () => {
      const { operations } = await first.grpc.unary(listOperations, asked);
      running = operations.find((operation) => metadataOf(operation).stage === Stage.EXECUTING)?.name ?? "";
      return running !== "";
    });
    await own.node?.stop();
    await cut;
    await own.start();
    const second = new Bench(own.client());
    const { operations, response } = await second.wait(name);
    deepEqual([operations.length, response.result?.outputFiles[0]?.path], [1, "o"]);
    equal(Buffer.from((await second.wait(running)).response.result?.stdoutRaw ?? "").toString(), "late\n");
  });

  test("REAPI-53, REAPI-54, REAPI-59, REAPI-75, REAPI-83: an invalid action is refused at once", async () => {
    const refused = async (action: Digest | Promise<Digest>, words: RegExp): Promise<void> =>
      await rejects(bench.execute(await action), (error) => {
        ok(isGrpcError(error, grpcCode.invalidArgument), String(error));
        match(error.message, words);
        return true;
      });
    const platform = (name: string, value: string) => ({ platform: { properties: [{ name, value }] } });
    await refused(bench.put(`\xff${randomUUID()}`), /action cannot be read/);
    await refused(bench.action({ arguments: [] }), /no program/);
    await refused(bench.sh("true", { environmentVariables: twice("A") }), /twice/);
    await refused(bench.sh("true", {}, {}, { timeout: seconds(7_200) }), /timeout/);
    await refused(bench.sh("true", {}, {}, { timeout: seconds(-1) }), /negative/);
    await refused(bench.sh("true", {}, {}, platform("frobnicator", "on")), /frobnicator/);
    await refused(bench.sh("true", {}, {}, platform("network", "perhaps")), /network/);
    await refused(bench.sh("true", { outputPaths: ["/etc/passwd"] }), /absolute/);
    await refused(bench.sh("true", { outputPaths: ["../../x"] }), /leads out/);
    await refused(bench.sh("true", { workingDirectory: "../up" }), /workingDirectory/);
    await refused(bench.sh("true", { outputNodeProperties: ["colour"] }), /colour/);
  });

  test("REAPI-75: a working directory that is not in the tree is refused when it is staged", async () => {
    const { response } = await bench.execute(await bench.sh(salted("true"), { workingDirectory: "nowhere" }));
    equal(response.status?.code, grpcCode.invalidArgument);
  });

  test("REAPI-59, REAPI-60: properties become requirements; the action's override the command's", async () => {
    const fine = {
      properties: [
        { name: "OSFamily", value: "Linux" },
        { name: "gpu", value: "yes" },
      ],
    };
    const ignored = { properties: [...fine.properties, { name: "container-image", value: "any" }] };
    const absurd = { properties: [{ name: "frobnicator", value: "on" }] };
    const action = await bench.sh(salted("true"), { platform: absurd }, {}, { platform: ignored });
    equal((await bench.execute(action)).response.status?.code ?? 0, 0);
    const command = await bench.sh(salted("true"), { platform: fine });
    equal((await bench.execute(command)).response.status?.code ?? 0, 0);
  });

  test("REAPI-59: a worker offers its kind of sandbox, and an action can require one", async () => {
    const [nodes] = (await lab.node?.journal.nodes()) ?? [];
    const kind = String(nodes?.facts["sandbox"]);
    match(kind, /^(bubblewrap|plain)$/);
    ok(lab.node?.labels.includes(`sandbox=${kind}`));
    const asking = (value: string) => ({ platform: { properties: [{ name: "sandbox", value }] } });
    const fine = await bench.execute(await bench.sh(salted("true"), {}, {}, asking(kind)));
    equal(fine.response.status?.code ?? 0, 0);
    const { response } = await bench.execute(await bench.sh(salted("true"), {}, {}, asking("vault")));
    match(response.status?.message ?? "", /does not offer sandbox=vault/);
  });

  test("REAPI-57: an action that no worker can run is refused at once, with what is lacking", async () => {
    const properties = [{ name: "Pool", value: "moon" }];
    const action = await bench.sh(salted("true"), {}, {}, { platform: { properties } });
    const { name, response } = await bench.execute(action);
    equal(response.status?.code, grpcCode.failedPrecondition);
    match(response.status?.message ?? "", /pool=moon/);
    const later = await bench.grpc.unary(Operations.methods.getOperation, { name });
    deepEqual(responseOf(later).status, response.status, "whoever asks later hears the same");
    deepEqual(missingIn(asError(response.status)), []);
  });

  test("REAPI-57: for a pool that is declared to have no worker at times it waits in the queue", async () => {
    const properties = [{ name: "Pool", value: "tide" }];
    const action = await bench.sh(salted("true"), {}, {}, { platform: { properties } });
    const signal = AbortSignal.timeout(4_000);
    const seen: number[] = [];
    await rejects(async () => {
      for await (const operation of bench.stream(action, {}, { signal })) seen.push(metadataOf(operation).stage);
    });
    ok(signal.aborted, "until nobody waits any more");
    ok(seen.every((stage) => stage === Stage.QUEUED));
  });

  test("REAPI-84: a failing command is a result with its exit code and its output, and is not cached", async () => {
    const action = await bench.sh(salted("echo 'about to fail' >&2; exit 7"));
    const { response } = await bench.execute(action);
    deepEqual([response.status?.code ?? 0, response.result?.exitCode], [0, 7]);
    equal(Buffer.from(response.result?.stderrRaw ?? "").toString(), "about to fail\n");
    match(response.message, /^job j.* on .*, sandbox: (bubblewrap|plain), result: blobs\/[0-9a-f]{64}\/\d+$/);
    equal(await cached(action), false);
    const [, hash = "", sizeBytes] = /blobs\/(\w+)\/(\d+)$/.exec(response.message) ?? [];
    const kept = decode(ActionResult, await bytes({ hash, sizeBytes: Number(sizeBytes) }));
    deepEqual([kept.exitCode, kept.stderrDigest], [7, response.result?.stderrDigest], "to be looked at by its digest");
    const log = response.serverLogs.get("run.txt");
    equal(log?.humanReadable, true);
    match(await text(log?.digest), /^ended: +exit code 7$/m);
    const { response: killed } = await bench.execute(await bench.sh(salted("kill -SEGV $$")));
    equal(killed.result?.exitCode, 139);
    match(killed.message, /SIGSEGV/);
  });

  test("REAPI-83: a missing program is 127, one that cannot be run 126", async () => {
    const exitCode = async (program: string) =>
      (await bench.execute(await bench.action({ arguments: [program, randomUUID()] }))).response.result?.exitCode;
    deepEqual([await exitCode("./nothing"), await exitCode("/etc/passwd")], [127, 126]);
  });

  test("REAPI-55: a command that times out returns what it made until then, and is not cached", async () => {
    const line = salted("echo begun > o; echo so far; sleep 100");
    const action = await bench.sh(line, { outputPaths: ["o"] }, {}, { timeout: seconds(1) });
    const { response } = await bench.execute(action);
    equal(response.status?.code, grpcCode.deadlineExceeded);
    equal(Buffer.from(response.result?.stdoutRaw ?? "").toString(), "so far\n");
    equal(await output(response, "o"), "begun\n");
    equal(await cached(action), false);
  });

  test("REAPI-77: an output of the wrong kind is reported as such", async () => {
    const action = await bench.sh(salted("mkdir o; echo x"), { outputFiles: ["o"] });
    const { response } = await bench.execute(action);
    equal(response.status?.code, grpcCode.failedPrecondition);
    equal(Buffer.from(response.result?.stdoutRaw ?? "").toString(), "x\n");
    equal(await cached(action), false);
  });

  test("REAPI-63: equal actions are one run; REAPI-62: unless they are not to be cached", async () => {
    const shared = await bench.sh(salted("sleep 0.5; date +%N > o"), { outputPaths: ["o"] });
    const both = await Promise.all([bench.execute(shared), bench.execute(shared)]);
    equal(both[0]?.name, both[1]?.name);
    ok(
      both.every(({ response }) => !response.cachedResult),
      "68: nobody's came from the cache",
    );
    const alone = await bench.sh(salted("sleep 0.5; date +%N > o"), { outputPaths: ["o"] }, {}, { doNotCache: true });
    const each = await Promise.all([bench.execute(alone), bench.execute(alone)]);
    ok(each[0]?.name !== each[1]?.name);
    equal(await cached(alone), false);
  });

  test("REAPI-63: another instance name, and another tenant, have separate runs", async () => {
    const line = salted("sleep 0.3");
    const action = await bench.sh(line);
    const bakery = new Bench(lab.client(secrets.bakery));
    const theirs = await bakery.sh(line);
    equal(theirs.hash, action.hash);
    const runs = await Promise.all([
      bench.execute(action),
      bench.execute(action, { instanceName: "other/place" }),
      bakery.execute(theirs),
    ]);
    equal(new Set(runs.map(({ name }) => name.split("/").at(-1))).size, 3);
    match(runs[1]?.name ?? "", /^other\/place\/operations\//);
  });

  test("REAPI-49, REAPI-50: a disconnected client waits again by name, before and after the end", async () => {
    const action = await bench.sh(salted("sleep 1.5; echo done > o"), { outputPaths: ["o"] });
    const leave = new AbortController();
    let name = "";
    await rejects(async () => {
      for await (const operation of bench.stream(action, {}, { signal: leave.signal })) {
        ({ name } = operation);
        leave.abort(new Error("cut off"));
      }
    });
    const waited = await bench.wait(name);
    equal(waited.name, name);
    equal(await output(waited.response, "o"), "done\n");
    const later = await bench.wait(name);
    deepEqual([later.operations.length, later.response.result?.exitCode], [1, 0]);
    equal(await cached(action), true);
  });

  test("REAPI-63: an action without clients is cancelled after the grace; REAPI-50: and is not found", async () => {
    const action = await bench.sh(salted("sleep 60"));
    const leave = new AbortController();
    let name = "";
    await rejects(async () => {
      for await (const operation of bench.stream(action, {}, { signal: leave.signal })) {
        ({ name } = operation);
        if (metadataOf(operation).stage === Stage.EXECUTING) leave.abort(new Error("gone"));
      }
    });
    const { getOperation } = Operations.methods;
    await until("it is cancelled", async () => (await bench.grpc.unary(getOperation, { name })).done);
    await rejects(bench.wait(name), code(grpcCode.notFound));
  });

  test("REAPI-50: unknown names, and names of other tenants and instances, are not found", async () => {
    const { name } = await bench.execute(await bench.sh(salted("true")));
    const bakery = new Bench(lab.client(secrets.bakery));
    for (const unknown of ["operations/j0-zzzz", "operations/x", "nonsense", "", `other/${name}`])
      await rejects(bench.wait(unknown), code(grpcCode.notFound), unknown);
    await rejects(bakery.wait(name), code(grpcCode.notFound));
    await rejects(bakery.grpc.unary(Operations.methods.cancelOperation, { name }), code(grpcCode.notFound));
  });

  test("REAPI-67: a cancelled operation ends as cancelled; cancelling again does nothing", async () => {
    const { getOperation, cancelOperation } = Operations.methods;
    const stream = bench.stream(await bench.sh(salted("sleep 60")));
    let last;
    for await (const operation of stream) {
      last = operation;
      if (metadataOf(operation).stage === Stage.EXECUTING)
        await bench.grpc.unary(cancelOperation, { name: operation.name });
    }
    ok(last?.done);
    equal(responseOf(last).status?.code, grpcCode.cancelled);
    await bench.grpc.unary(cancelOperation, { name: last.name });
    equal(responseOf(await bench.grpc.unary(getOperation, { name: last.name })).status?.code, grpcCode.cancelled);
    equal(last.result?.kind, "response", "47: never an error of the operation itself");
  });

  test("operations are listed page by page, of one's own tenant and instance", async () => {
    const { listOperations, deleteOperation, waitOperation } = Operations.methods;
    const own = new Bench(lab.client(secrets.bakery));
    const names = new Set<string>();
    for (let i = 0; i < 3; i += 1) names.add((await own.execute(await own.sh(salted("true")))).name);
    const listed = new Set<string>();
    for (let pageToken = "", pages = 0; pages === 0 || pageToken !== ""; pages += 1) {
      const asked = { name: "operations", filter: "", pageSize: 2, pageToken };
      const page = await own.grpc.unary(listOperations, asked);
      ok(page.operations.length <= 2);
      for (const { name } of page.operations) listed.add(name);
      pageToken = page.nextPageToken;
    }
    ok(names.isSubsetOf(listed));
    const [name = ""] = names;
    equal((await own.grpc.unary(waitOperation, { name })).done, true);
    await rejects(own.grpc.unary(deleteOperation, { name }), code(grpcCode.unimplemented));
  });

  test("REAPI-76, REAPI-80: parents of outputs exist, empty outputs are kept, and a folder is a tree", async () => {
    const line = salted(
      "test -d a/b && test ! -e a/b/c && test -f empty && test -d dir && echo 1 > a/b/c && echo 2 > t/x",
    );
    const outputPaths = ["a/b/c", "t"];
    const action = await bench.sh(line, { outputPaths }, { empty: "", "dir/": "", "t/": "" });
    const { response } = await bench.execute(action);
    equal(response.result?.exitCode, 0);
    deepEqual(
      response.result?.outputDirectories.map(({ path }) => path),
      ["t"],
    );
    equal((await bench.execute(action)).response.cachedResult, true);
  });

  test("REAPI-58, REAPI-64: any priority is accepted; a full queue says when to try again", async () => {
    const { response } = await bench.execute(await bench.sh(salted("true")), { executionPolicy: { priority: 1_000 } });
    equal(response.result?.exitCode, 0);
    await lab.node?.client.setTenant("mill", { weight: 1, runningMax: 1, queuedMax: 1 });
    try {
      // One of the two shards gets three: one runs, one waits.
      const slow = await Promise.all(Array.from({ length: 5 }, () => bench.sh(salted("sleep 1"))));
      const runs = await Promise.allSettled(slow.map((action) => bench.execute(action)));
      const full = runs.flatMap((run) => (run.status === "rejected" ? [run.reason as GrpcError] : []));
      ok(full.length > 0);
      ok(
        full.every((error) => isGrpcError(error, grpcCode.resourceExhausted)),
        String(full),
      );
      ok(full.every((error) => detailsOf(error, RetryInfo).length === 1));
    } finally {
      await lab.node?.client.setTenant("mill", { weight: 1, runningMax: 0, queuedMax: 0 });
    }
  });

  test("an action has no network unless it asks for it, and never sees this node's data", async (t) => {
    if (!lab.log.some((line) => line.includes("network own"))) return t.skip("needs a network namespace: refused here");
    const line = salted("ls /sys/class/net | tr '\\n' ' '");
    const interfaces = async (network: string): Promise<string> => {
      const platform = { properties: [{ name: "network", value: network }] };
      const { response } = await bench.execute(
        await bench.sh(`tail -n +3 /proc/net/dev; : ${line}`, {}, {}, { platform }),
      );
      return Buffer.from(response.result?.stdoutRaw ?? "").toString();
    };
    match(await interfaces("off"), /^\s*lo:.*\n$/);
    ok((await interfaces("on")).length > 0);
  });
});

const twice = (name: string) => [
  { name, value: "1" },
  { name, value: "2" },
];
