/** Actions with a persistent tool: a real tool in a real sandbox, well-behaved and not. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { digestOf } from "#blobs/hashing.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import { grpcCode } from "#grpc/status.ts";
import {
  Action,
  Command,
  Directory,
  type FileNode,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { StringValue } from "#wire/generated/google/protobuf/wrappers.ts";
import { decode, encode } from "#wire/message.ts";
import { clearAway } from "#testing/clear-away.ts";
import { realClock } from "#testing/real-clock.ts";
import { until } from "#testing/until.ts";
import { Stopped } from "#worker/holding.ts";
import { rigHome } from "#worker/process/testing/rig.ts";
import { isAlive } from "#worker/process/launcher/proc.ts";
import { Sandbox } from "#worker/sandbox/sandbox.ts";
import { createSpawnedRunner } from "#worker/spawned-runner.ts";
import { LinkCache } from "#worker/stage/link-cache.ts";
import { python, testingTool, withoutTool } from "#worker/tool/testing/python.ts";
import { Tools } from "#worker/tool/tools.ts";
import { wireOf } from "#doors/build/digests.ts";
import type { ActionSpec } from "#doors/build/plan.ts";
import { readAnswer, readOutcome } from "./outcome.ts";
import { actionRunner, type ActionPorts } from "#doors/build/run.ts";
import { actionClaim, noCommand } from "#doors/build/testing/build.ts";
import { TenantTrees } from "#doors/build/cache/tenant-trees.ts";

const toolText = readFileSync(testingTool);

type Trial = {
  readonly tenant?: string;
  readonly attempt?: number;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  readonly protocol?: "proto" | "json";
  readonly files?: Readonly<Record<string, string>>;
  readonly outputs?: readonly string[];
  /** An extra start argument: makes it a different tool. */
  readonly word?: string;
  readonly isMarked?: boolean;
};

type Answered = {
  readonly status: number;
  readonly exitCode: number | undefined;
  readonly stderr: string;
  readonly files: Readonly<Record<string, string>>;
  readonly tool: { readonly asked?: number; readonly without?: string } | undefined;
  readonly isForCache: boolean;
};

describe("an action with a persistent tool", { skip: withoutTool, timeout: 120_000 }, () => {
  const home = rigHome();
  const store = createMemoryStore({ clock: realClock, sizeBytesMax: 1e9 });
  let sandbox: Sandbox;
  let tools: Tools;
  let ports: ActionPorts;
  const log: string[] = [];

  const toolsOf = (toolsMax: number, idleMs = 60_000): Tools => {
    const processes = createSpawnedRunner(sandbox.unboxed);
    return new Tools({ sandbox, processes, clock: realClock, log: (line) => log.push(line) }, { toolsMax, idleMs });
  };

  before(async () => {
    const lanes = { lanes: 4, ownLanes: 2 };
    sandbox = await Sandbox.open({ home, socket: join(home, "sock"), ...lanes, clock: realClock, log: () => {} });
    const links = await LinkCache.open({ folder: join(home, "inputs"), bytesMax: 1e9 });
    tools = toolsOf(2);
    const limits = { printedBytesMax: 100_000, pidsMax: 100 };
    ports = { store, sandbox, tools, trees: new TenantTrees(), links, worker: "bench", ...limits };
  });
  after(async () => {
    await tools[Symbol.asyncDispose]();
    await sandbox.close({ quit: true });
    clearAway(home);
  });

  const put = async (tenant: string, bytes: Uint8Array | string): Promise<Digest> => {
    const all = Buffer.from(bytes);
    await store.forTenant(tenant).blobs.write(digestOf(all), all);
    return digestOf(all);
  };

  async function specOf(lines: readonly string[], trial: Trial): Promise<ActionSpec> {
    const { tenant = "mill", protocol = "proto", files = {}, outputs = [], word, isMarked = true } = trial;
    const file = async (name: string, bytes: Uint8Array | string, marked = false): Promise<FileNode> => ({
      name,
      digest: wireOf(await put(tenant, bytes)),
      isExecutable: false,
      ...(marked && { nodeProperties: { properties: [{ name: "bazel_tool_input", value: "" }] } }),
    });
    const named = Object.entries(files).map(([name, bytes]) => file(name, bytes));
    const own = [file("tool.py", toolText, isMarked), file("words", `${lines.join("\n")}\n`)];
    const root: Directory = { files: await Promise.all([...own, ...named]), directories: [], symlinks: [] };
    const json = protocol === "json" ? ["--json"] : [];
    const command: Command = {
      ...noCommand,
      arguments: [python, "tool.py", ...json, ...(word === undefined ? [] : [word]), "@words"],
      environmentVariables: [{ name: "PATH", value: "/usr/bin:/bin" }],
      outputPaths: outputs,
    };
    const action: Action = {
      commandDigest: wireOf(await put(tenant, encode(Command, command))),
      inputRootDigest: wireOf(await put(tenant, encode(Directory, root))),
      doNotCache: false,
      salt: Buffer.from(randomUUID()),
    };
    return {
      instance: "",
      fn: "sha256",
      action: await put(tenant, encode(Action, action)),
      merge: "m",
      doNotCache: false,
      timeoutMs: trial.timeoutMs ?? 30_000,
      requires: [],
      network: false,
      memoryBytes: 0,
      cpus: 0,
      tool: { key: "k", protocol },
      queueMs: 1_000,
      leaveGraceMs: 1_000,
      queuedAtMs: Date.now(),
      principal: "miller",
      target: "",
      mnemonic: "",
    };
  }

  async function run(lines: readonly string[], trial: Trial = {}, kept = tools): Promise<Answered> {
    const { tenant = "mill", attempt = 1, signal = new AbortController().signal } = trial;
    const { blobs } = store.forTenant(tenant);
    const task = { ...actionClaim, tenant, attempt, spec: JSON.stringify(await specOf(lines, trial)) };
    const runner = actionRunner({ ...ports, tools: kept });
    const outcome = await runner({ task, signal, blobs, clock: realClock, report: () => {} });
    ok(outcome.kind === "done", JSON.stringify(outcome));
    const known = readOutcome({ payload: outcome.payload, digests: [] });
    ok(known);
    const { result, status } = await readAnswer(known, blobs);
    const text = async (digest: { hash: string; sizeBytes: number } | undefined): Promise<string> =>
      digest ? Buffer.from(await wholeBlob(blobs, `${digest.hash}/${digest.sizeBytes}`)).toString() : "";
    const files = (result?.outputFiles ?? []).map(async ({ path, digest }) => [path, await text(digest)] as const);
    const [usage] = result?.executionMetadata?.auxiliaryMetadata ?? [];
    return {
      status: status?.code ?? 0,
      exitCode: result?.exitCode,
      stderr: await text(result?.stderrDigest),
      files: Object.fromEntries(await Promise.all(files)),
      tool: usage && (JSON.parse(decode(StringValue, usage.value).value) as Pick<Answered, "tool">).tool,
      isForCache: outcome.publish !== undefined,
    };
  }

  const withCount = { outputs: ["n"] };
  const pidIn = ({ files }: Answered): number => Number(files["n"]?.split(" ")[0]);

  for (const protocol of ["proto", "json"] as const)
    test(`${protocol}: one process serves one action after the other, each with its own inputs and outputs`, async () => {
      await using own = toolsOf(2);
      const words = ["copy in out", "count n", "list l", "say hello", "warn careful"];
      const outputs = ["out", "n", "l"];
      const first = await run(words, { protocol, files: { in: "one" }, outputs }, own);
      const listed = "in n out tool.py words";
      deepEqual([first.files["out"], first.files["l"], first.stderr], ["one", listed, "hello\ncareful\n"]);
      deepEqual([first.exitCode, first.status, first.tool, first.isForCache], [0, 0, { asked: 1 }, true]);
      const second = await run([...words, "make more"], { protocol, files: { in: "two" }, outputs }, own);
      deepEqual([second.files["out"], second.files["l"], second.stderr], ["two", listed, "hello\ncareful\n"]);
      deepEqual(second.tool, { asked: 2 });
      const third = await run(["count n", "list l", "exit 3"], { protocol, outputs: ["l", "n"] }, own);
      deepEqual([third.files["l"], third.exitCode, third.isForCache], ["n tool.py words", 3, false]);
      deepEqual([pidIn(first), pidIn(second)], [pidIn(third), pidIn(third)]);
      deepEqual(own.counts, { lent: 0, idle: 1, kept: 2, started: 1, broken: 0 });
    });

  test("many inputs in folders, a request larger than a pipe, and an answer as large", async () => {
    const files = Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`input-${at}-${"x".repeat(40)}`, "x"]));
    const { stderr, tool } = await run([`say ${"y".repeat(90_000)}`], { files });
    deepEqual([stderr.length, tool?.asked !== undefined], [90_001, true]);
  });

  test("a tool of another tenant, another command or another key is not used", async () => {
    await using own = toolsOf(3);
    const answers = [
      await run(["count n"], withCount, own),
      await run(["count n"], { ...withCount, tenant: "bakery" }, own),
      await run(["count n"], { ...withCount, word: "--other" }, own),
    ];
    deepEqual(
      answers.map(({ tool }) => tool),
      [{ asked: 1 }, { asked: 1 }, { asked: 1 }],
    );
    equal(own.counts.started, 3);
  });

  test("an action that cannot use a tool is run as any other, and says why", async () => {
    const unmarked = await run(["count n"], { ...withCount, isMarked: false });
    deepEqual([unmarked.exitCode, unmarked.tool], [0, { without: "none of its inputs is marked as the tool's" }]);
    const again = await run(["count n"], { ...withCount, attempt: 2 });
    deepEqual([again.exitCode, again.tool], [0, undefined]);
  });

  test("O3: when the limit is reached, an idle tool is ended; if all are busy, the action runs without", async () => {
    await using own = toolsOf(1);
    const first = await run(["count n"], withCount, own);
    const second = await run(["count n"], { ...withCount, word: "--other" }, own);
    deepEqual([first.tool, second.tool, own.counts.idle], [{ asked: 1 }, { asked: 1 }, 1]);
    const stop = new AbortController();
    const busy = run(["hang"], { word: "--other", signal: stop.signal }, own);
    await until("it is at work", () => own.counts.lent === 1);
    const third = await run(["count n"], withCount, own);
    deepEqual(third.tool, { without: "all tools are busy" });
    stop.abort(new Stopped("cancelled"));
    await rejects(busy, Stopped);
  });

  test("if a tool cannot be started, the action is run as any other", async () => {
    const processes = (): Promise<never> =>
      Promise.reject(new Fault("unavailable", "make pipes", { why: "no mkfifo" }));
    await using none = new Tools(
      { sandbox, processes, clock: realClock, log: () => {} },
      { toolsMax: 1, idleMs: 1_000 },
    );
    const { exitCode, tool } = await run(["count n"], withCount, none);
    equal(exitCode, 0);
    match(tool?.without ?? "", /no mkfifo/);
    deepEqual(none.counts, { lent: 0, idle: 0, kept: 0, started: 0, broken: 0 });
  });

  test("an idle tool is ended", async () => {
    await using own = toolsOf(1, 50);
    await run(["count n"], { ...withCount, word: "--lonely" }, own);
    await until("none is left", () => own.counts.idle === 0 && toolsAlive("--lonely") === 0);
  });

  describe("O5: a misbehaving tool costs time, and nothing else", () => {
    const cases: readonly (readonly [string, string, RegExp])[] = [
      ["dies", "die", /ended \(exited, exit code 9\)/],
      ["dies with half an answer", "half", /ended \(exited/],
      ["prints without end", "flood", /more than|a length|an answer of|no JSON/],
      ["answers what nobody asked", "id 7", /request 7/],
    ];
    for (const protocol of ["proto", "json"] as const)
      for (const [what, word, why] of cases)
        test(`${protocol}: it ${what}`, async () => {
          await using own = toolsOf(1);
          const { exitCode, files, tool } = await run([word, "make o"], { protocol, outputs: ["o"] }, own);
          deepEqual([exitCode, files], [0, { o: "made" }]);
          match(tool?.without ?? "", why);
          equal(own.counts.broken, 1);
          const next = await run(["count n"], { ...withCount, protocol }, own);
          deepEqual(next.tool, { asked: 1 }, "another one is started");
        });

    test("it never answers: the action times out, and the tool is killed", async () => {
      await using own = toolsOf(1);
      const late = await run(["make o", "hang"], { timeoutMs: 1_500, outputs: ["o"], word: "--late" }, own);
      deepEqual([late.status, late.files, late.isForCache], [grpcCode.deadlineExceeded, { o: "made" }, false]);
      equal(toolsAlive("--late"), 0);
      deepEqual((await run(["count n"], withCount, own)).tool, { asked: 1 });
    });

    test("the claim is lost in between: the tool is dead when the runner has returned", async () => {
      await using own = toolsOf(1);
      const stop = new AbortController();
      const running = run(["warn begun", "hang"], { signal: stop.signal, word: "--lost" }, own);
      await until("it is at work", () => toolsAlive("--lost") > 0);
      stop.abort(new Stopped("lost"));
      await rejects(running, Stopped);
      equal(toolsAlive("--lost"), 0);
    });

    for (const word of ["later", "twice"])
      test(`it prints between requests (${word}): it is not used again`, async () => {
        await using own = toolsOf(1);
        const first = await run(["count n", word], withCount, own);
        equal(first.exitCode, 0);
        await until("it is not kept", () => own.counts.idle === 0);
        const second = await run(["count n"], withCount, own);
        deepEqual([second.exitCode, second.tool], [0, { asked: 1 }]);
      });

    test("its output is limited", async () => {
      const { stderr } = await run([`warn ${"w".repeat(300_000)}`, "say first"]);
      ok(stderr.startsWith("first\n") && stderr.length <= 100_000, `${stderr.length}`);
    });
  });

  test("O4: a tool that replaces folders with links gets no file that is not its own", async () => {
    await using own = toolsOf(1);
    const elsewhere = join(home, "elsewhere");
    mkdirSync(elsewhere, { mode: 0o700 });
    writeFileSync(join(elsewhere, "o"), "secret");
    chmodSync(elsewhere, 0o700);
    const found: string[] = [];
    for (let turn = 0; turn < 20; turn += 1) {
      // Inputs are staged into a folder that the tool tries to redirect.
      const { files, status } = await run([`swap d ${elsewhere}`], { outputs: ["d/o"] }, own);
      found.push(files["d/o"] ?? `none ${status}`);
    }
    ok(!found.includes("secret"), found.join());
    deepEqual(readdirSync(elsewhere), ["o"]);
    equal(readFileSync(join(elsewhere, "o"), "utf8"), "secret");
  });
});

/** The tools that were started with the argument. */
function toolsAlive(word: string): number {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid) || !isAlive(Number(pid))) return false;
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      return words.includes("--persistent_worker") && words.includes(word) && !/^[^\0]*bwrap\0/.test(words);
    } catch {
      return false;
    }
  }).length;
}
