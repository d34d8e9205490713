/** The builds API, against a whole node. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { detailsOf, grpcCode, GrpcError } from "#grpc/status.ts";
import {
  ActionState as State,
  BuildPhase as Phase,
  Builds,
  type Build,
  type BuildAction,
  type BuildStatus,
  type Input,
} from "#wire/generated/millrace/build/v1/builds.ts";
import { ContentAddressableStorage } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { PreconditionFailure } from "#wire/generated/google/rpc/error_details.ts";
import { Bench, Lab, secrets, shAction as sh, tokensFor } from "./execution-lab.ts";

const isLinux = process.platform === "linux";
const tokens = tokensFor(["member"]);

/** So that tests do not share cached results. */
const salted = (line: string): string => `${line} # ${randomUUID()}`;
const from = (action: string, path: string, at = path): Input => ({
  path: at,
  isExecutable: false,
  source: { kind: "output", value: { action, path } },
});
const contents = (path: string, text: string, isExecutable = false): Input => ({
  path,
  isExecutable,
  source: { kind: "contents", value: Buffer.from(text) },
});
const buildOf = (...actions: readonly BuildAction[]): Build => ({
  name: "bread",
  instanceName: "",
  actions,
  deadlineMs: 0,
});
const code = (wanted: number) => (error: unknown) => error instanceof GrpcError && error.code === wanted;
const stateOf = ({ actions }: BuildStatus, key: string) => actions.find((action) => action.key === key)?.state;

describe("builds", { skip: !isLinux && "needs linux: the sandbox", timeout: 200_000 }, () => {
  let lab: Lab;
  let bench: Bench;
  before(async () => {
    lab = await Lab.open({
      edge: { listen: ["127.0.0.1:0"], identity: { tokens } },
      worker: { slots: 4, labels: ["gpu=yes"] },
    });
    bench = new Bench(lab.client(secrets.mill));
  });
  after(async () => await lab[Symbol.asyncDispose]());

  const { submitBuild, getBuild, getAction, watchBuild, listBuilds, cancelBuild } = Builds.methods;
  const submit = async (build: Build, requestId = "") =>
    await bench.grpc.unary(submitBuild, { requestId, priority: 0, what: { kind: "build", value: build } });
  const get = async (buildId: string) => await bench.grpc.unary(getBuild, { buildId, withActions: true });
  /** To its end. */
  const run = async (build: Build): Promise<BuildStatus> => {
    const { buildId } = await submit(build);
    for await (const _ of bench.grpc.serverStream(watchBuild, { buildId }));
    return await get(buildId);
  };
  const text = async (digest: string): Promise<string> => {
    const [hash = "", size = ""] = digest.split("/");
    const { responses } = await bench.grpc.unary(ContentAddressableStorage.methods.batchReadBlobs, {
      instanceName: "",
      digests: [{ hash, sizeBytes: Number(size) }],
      acceptableCompressors: [],
      digestFunction: 0,
    });
    return Buffer.from(responses[0]?.data ?? "").toString();
  };
  const output = async (buildId: string, key: string, path: string): Promise<string> => {
    const { outputs } = await bench.grpc.unary(getAction, { buildId, key });
    const made = outputs.find((one) => one.path === path)?.made;
    return made?.kind === "blob" ? await text(made.value) : "";
  };

  test("outputs of one action are inputs of the other, and the second time both are cached", async () => {
    const build = buildOf(
      sh("bread", "cat flour/fine > bread && ./bake >> bread", {
        inputs: [from("flour", "out/flour", "flour/fine"), contents("bake", "#!/bin/sh\necho baked\n", true)],
        outputPaths: ["bread"],
      }),
      sh("flour", salted("mkdir -p out && tr a-z A-Z < corn > out/flour"), {
        inputs: [contents("corn", "ground corn\n")],
        outputPaths: ["out/flour"],
      }),
    );
    const first = await run(build);
    equal(first.phase, Phase.BUILD_PHASE_SUCCEEDED, first.reason);
    deepEqual(first.counts, [{ state: State.ACTION_STATE_SUCCEEDED, actions: 2 }]);
    equal(await output(first.buildId, "bread", "bread"), "GROUND CORN\nbaked\n");
    const second = await run(build);
    deepEqual(second.counts, [{ state: State.ACTION_STATE_CACHED, actions: 2 }]);
    equal(await output(second.buildId, "bread", "bread"), "GROUND CORN\nbaked\n");
    const digest = first.actions[0]?.actionDigest ?? "";
    const [hash = "", size = ""] = digest.split("/");
    const { response } = await bench.execute({ hash, sizeBytes: Number(size) });
    equal(response.cachedResult, true, "it is in the action cache, where any client finds it");
  });

  test("folders, files within them and links are inputs, too", async () => {
    const build = buildOf(
      sh(
        "make",
        salted("mkdir -p d/e && echo one > d/a && echo two > d/e/b && chmod +x d/e/b && ln -s a d/l && ln -s d/a l"),
        {
          outputPaths: ["d", "l"],
        },
      ),
      sh("take", "cat all/a all/e/b all/l x link > o; test -x x && echo runs >> o", {
        inputs: [
          from("make", "d", "all"),
          from("make", "d/e/b", "x"),
          from("make", "l", "link"),
          contents("d/a", "own\n"),
        ],
        outputPaths: ["o"],
      }),
    );
    const done = await run(build);
    equal(done.phase, Phase.BUILD_PHASE_SUCCEEDED, JSON.stringify(done.actions));
    equal(await output(done.buildId, "take", "o"), "one\ntwo\none\ntwo\nown\nruns\n");
  });

  test("a failed action also fails what needs it, and nothing else", async () => {
    const build = buildOf(
      sh("bad", salted("echo no corn >&2; exit 3")),
      sh("lazy", salted("true"), { outputPaths: ["never"] }),
      sh("behind", "true", { after: ["bad"] }),
      sh("further", "true", { after: ["behind"] }),
      sh("good", salted("true")),
      sh("fine", "true", { after: ["good"] }),
    );
    const done = await run(build);
    equal(done.phase, Phase.BUILD_PHASE_FAILED);
    deepEqual(
      done.actions.map(({ key, state }) => [key, state]),
      [
        ["bad", State.ACTION_STATE_FAILED],
        ["lazy", State.ACTION_STATE_FAILED],
        ["behind", State.ACTION_STATE_SKIPPED],
        ["further", State.ACTION_STATE_SKIPPED],
        ["good", State.ACTION_STATE_SUCCEEDED],
        ["fine", State.ACTION_STATE_SUCCEEDED],
      ],
    );
    match(done.actions[0]?.message ?? "", /^exit code 3: no corn$/);
    match(done.actions[1]?.message ?? "", /it did not make never/);
    match(done.actions[2]?.message ?? "", /bad did not end well/);
    const bad = await bench.grpc.unary(getAction, { buildId: done.buildId, key: "bad" });
    deepEqual([bad.exitCode, await text(bad.stderr)], [3, "no corn\n"]);
    equal(bad.status?.attempts, 1, "its own failure is not tried again");
  });

  test("a request id makes one build, however often it is sent; with another build it is refused", async () => {
    const requestId = randomUUID();
    const build = buildOf(sh("a", salted("true")));
    const first = await submit(build, requestId);
    const second = await submit(build, requestId);
    deepEqual([first.created, second.created, second.buildId], [true, false, first.buildId]);
    await rejects(submit(buildOf(sh("b", "true")), requestId), code(grpcCode.alreadyExists));
  });

  test("everything missing in the store is reported at once, before anything is recorded", async () => {
    const hash = (n: number): string => createHash("sha256").update(`${n} ${randomUUID()}`).digest("hex");
    const blobs = [`${hash(1)}/10`, `${hash(2)}/20`];
    const tree = `${hash(3)}/30`;
    const inputs: Input[] = [
      ...blobs.map((value, i): Input => ({ path: `f${i}`, isExecutable: false, source: { kind: "blob", value } })),
      { path: "t", isExecutable: false, source: { kind: "tree", value: tree } },
    ];
    await rejects(submit(buildOf(sh("a", "true", { inputs }))), (error) => {
      ok(error instanceof GrpcError && error.code === grpcCode.failedPrecondition);
      const subjects = detailsOf(error, PreconditionFailure).flatMap(({ violations }) =>
        violations.map((one) => one.subject),
      );
      deepEqual(subjects.toSorted(), [...blobs, tree].map((digest) => `blobs/${digest}`).toSorted());
      return true;
    });
  });

  test("an invalid build is refused with a message", async () => {
    const refused = async (words: RegExp, ...actions: readonly BuildAction[]) =>
      await rejects(
        submit(buildOf(...actions)),
        (error) => code(grpcCode.invalidArgument)(error) && words.test(String(error)),
      );
    await refused(/no actions/);
    await refused(/two actions are called "?a/, sh("a", "true"), sh("a", "false"));
    await refused(/needs "?b.*no such action/, sh("a", "true", { after: ["b"] }));
    await refused(/need each other/, sh("a", "true", { after: ["b"] }), sh("b", "true", { after: ["a"] }));
    await refused(
      /whose outputs are others: y/,
      sh("a", "true", { inputs: [from("b", "x")] }),
      sh("b", "true", { outputPaths: ["y"] }),
    );
    await refused(/two inputs/, sh("a", "true", { inputs: [contents("x", ""), contents("x/y", "")] }));
    await refused(/relative path/, sh("a", "true", { inputs: [contents("../x", "")] }));
    await refused(/out of the input root/, sh("a", "true", { outputPaths: ["../../x"] }));
    await refused(/unknown platform property/, sh("a", "true", { platform: [{ name: "shoes", value: "red" }] }));
    await refused(/no program is named/, sh("a", "true", { arguments: [] }));
  });

  test("other tenants neither see nor cancel it, and a read-only caller may not submit", async () => {
    const { buildId } = await submit(buildOf(sh("a", salted("true"))));
    const stranger = lab.client(secrets.bakery);
    await rejects(stranger.unary(getBuild, { buildId, withActions: false }), code(grpcCode.notFound));
    await rejects(stranger.unary(cancelBuild, { buildId, reason: "" }), code(grpcCode.notFound));
    const { builds } = await stranger.unary(listBuilds, { pageSize: 10, pageToken: "" });
    deepEqual(builds, []);
    const what = { kind: "build", value: buildOf(sh("a", "true")) } as const;
    await rejects(
      lab.client(secrets.reader).unary(submitBuild, { requestId: "", priority: 0, what }),
      code(grpcCode.permissionDenied),
    );
  });

  test("a cancelled build stops everything that runs of it", async () => {
    const { buildId } = await submit(buildOf(sh("long", salted("sleep 600")), sh("next", "true", { after: ["long"] })));
    const seen: number[] = [];
    for await (const { build, changed } of bench.grpc.serverStream(watchBuild, { buildId })) {
      for (const { key, state } of changed) if (key === "long") seen.push(state);
      if (changed.some(({ state }) => state === State.ACTION_STATE_RUNNING))
        deepEqual(
          await bench.grpc.unary(cancelBuild, { buildId, reason: "enough" }).then((answer) => answer.cancelled),
          true,
        );
      if (build?.phase === Phase.BUILD_PHASE_CANCELLED) equal(build.reason, "cancelled by mill: enough");
    }
    equal(seen.at(-1), State.ACTION_STATE_CANCELLED);
    const done = await get(buildId);
    deepEqual([done.phase, stateOf(done, "next")], [Phase.BUILD_PHASE_CANCELLED, State.ACTION_STATE_CANCELLED]);
    deepEqual((await bench.grpc.unary(cancelBuild, { buildId, reason: "" })).cancelled, false);
    const { builds } = await bench.grpc.unary(listBuilds, { pageSize: 100, pageToken: "" });
    ok(builds.some((one) => one.buildId === buildId && one.name === "bread"));
  });

  test("the watch ends with the state of every action", async () => {
    const actions = Array.from({ length: 30 }, (_, i) =>
      sh(`a${i}`, salted(`echo ${i} > o`), {
        outputPaths: ["o"],
        inputs: i % 3 === 2 ? [from(`a${i - 1}`, "o", "in")] : [],
      }),
    );
    const { buildId } = await submit(buildOf(...actions));
    const told = new Map<string, number>();
    let last: BuildStatus | undefined;
    for await (const { build, changed } of bench.grpc.serverStream(watchBuild, { buildId })) {
      for (const { key, state } of changed) told.set(key, state);
      last = build;
    }
    const done = await get(buildId);
    equal(last?.phase, Phase.BUILD_PHASE_SUCCEEDED);
    deepEqual(last?.counts, done.counts);
    deepEqual(new Map(done.actions.map(({ key, state }) => [key, state])), told);
  });

  test("it continues where it was when the node is restarted", async () => {
    const build = buildOf(
      sh("one", salted("sleep 0.2; echo 1 > o"), { outputPaths: ["o"] }),
      sh("two", salted("sleep 2; cat in > o"), { inputs: [from("one", "o", "in")], outputPaths: ["o"] }),
      sh("three", salted("cat in > o"), { inputs: [from("two", "o", "in")], outputPaths: ["o"] }),
    );
    const { buildId } = await submit(build);
    for await (const { changed } of bench.grpc.serverStream(watchBuild, { buildId }))
      if (changed.some(({ key, state }) => key === "one" && state === State.ACTION_STATE_SUCCEEDED)) break;
    await lab.node?.stop();
    await lab.start();
    bench = new Bench(lab.client(secrets.mill));
    for await (const _ of bench.grpc.serverStream(watchBuild, { buildId }));
    const done = await get(buildId);
    equal(done.phase, Phase.BUILD_PHASE_SUCCEEDED, done.reason);
    equal(await output(buildId, "three", "o"), "1\n");
    equal(done.actions[0]?.attempts, 1, "what was done stays done");
  });
});
