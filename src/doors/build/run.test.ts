/** What a worker does for an action, with a real sandbox, link cache and store, and an invented claim for each. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { digestOf } from "#blobs/hashing.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import { detailsOf, grpcCode, GrpcError } from "#grpc/status.ts";
import type { Granted } from "#shard/client/executor.ts";
import {
  Action,
  Command,
  Directory,
  type ExecuteResponse,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { PreconditionFailure, RetryInfo } from "#wire/generated/google/rpc/error_details.ts";
import { encode } from "#wire/message.ts";
import { clearAway } from "#testing/clear-away.ts";
import { realClock } from "#testing/real-clock.ts";
import { until } from "#testing/until.ts";
import { Stopped } from "#worker/holding.ts";
import { rigHome } from "#worker/process/testing/rig.ts";
import type { RunOutcome } from "#worker/runner.ts";
import type { Attempt } from "#worker/sandbox/attempt.ts";
import { Sandbox } from "#worker/sandbox/sandbox.ts";
import { LinkCache } from "#worker/stage/link-cache.ts";
import { wireOf } from "./digests.ts";
import { blobSubject } from "./names.ts";
import type { ActionSpec } from "./plan.ts";
import { actionKind } from "./plan.ts";
import { actionRunners, type ActionPorts } from "./run.ts";
import { answerDigest, readAnswer, readOutcome } from "./run/outcome.ts";
import { TenantTrees } from "./cache/tenant-trees.ts";
import { actionClaim } from "./testing/build.ts";

const isLinux = process.platform === "linux";
const none = { outputFiles: [], outputDirectories: [], outputNodeProperties: [], outputDirectoryFormat: 0 };

const claim = { ...actionClaim, tenant: "mill" };

describe("an action on a worker", { skip: !isLinux && "needs linux: the sandbox", timeout: 120_000 }, () => {
  const home = rigHome();
  const store = createMemoryStore({ clock: realClock, sizeBytesMax: 1e9 });
  const { blobs } = store.forTenant("mill");
  let ports: ActionPorts;
  before(async () => {
    const options = { home, socket: join(home, "sock"), lanes: 2, clock: realClock, log: () => {} };
    const links = await LinkCache.open({ folder: join(home, "inputs"), bytesMax: 1e9 });
    const sandbox = await Sandbox.open(options);
    const limits = { printedBytesMax: 100_000, pidsMax: 100 };
    ports = { store, sandbox, trees: new TenantTrees(), links, worker: "bench", ...limits };
  });
  after(async () => {
    await ports.sandbox.close({ quit: true });
    clearAway(home);
  });

  const put = async (bytes: Uint8Array | string): Promise<Digest> => {
    const all = Buffer.from(bytes);
    await blobs.write(digestOf(all), all);
    return digestOf(all);
  };

  type Trial = Partial<ActionSpec> & {
    readonly outputPaths?: readonly string[];
    readonly attempt?: number;
    readonly outOfMemory?: number;
    readonly signal?: AbortSignal;
    readonly files?: Readonly<Record<string, string>>;
    readonly with?: Partial<ActionPorts>;
  };

  async function grant(line: string, { files = {}, outputPaths = [], ...rest }: Trial): Promise<Granted> {
    const named = Object.entries(files).map(async ([name, bytes]) => ({
      name,
      digest: wireOf(await put(bytes)),
      isExecutable: false,
    }));
    const root: Directory = { files: await Promise.all(named), directories: [], symlinks: [] };
    const command: Command = {
      ...none,
      arguments: ["/bin/sh", "-c", line],
      environmentVariables: [{ name: "PATH", value: "/usr/bin:/bin" }],
      workingDirectory: "",
      outputPaths,
    };
    const action: Action = {
      commandDigest: wireOf(await put(encode(Command, command))),
      inputRootDigest: wireOf(await put(encode(Directory, root))),
      doNotCache: rest.doNotCache ?? false,
      salt: Buffer.from(randomUUID()),
    };
    const { with: _, signal: __, attempt = 1, outOfMemory, ...said } = rest;
    const spec: ActionSpec = {
      instance: "",
      fn: "sha256",
      action: await put(encode(Action, action)),
      merge: "m",
      doNotCache: false,
      timeoutMs: 30_000,
      requires: [],
      network: false,
      memoryBytes: 0,
      cpus: 0,
      queueMs: 1_000,
      leaveGraceMs: 1_000,
      queuedAtMs: Date.now() + 60_000,
      principal: "miller",
      target: "",
      mnemonic: "",
      ...said,
    };
    return {
      ...claim,
      attempt,
      outOfMemory,
      spec: JSON.stringify(spec),
    };
  }

  async function run(line: string, trial: Trial = {}): Promise<RunOutcome> {
    const task = await grant(line, trial);
    const runner = actionRunners({ ...ports, ...trial.with })[actionKind];
    ok(runner);
    const signal = trial.signal ?? new AbortController().signal;
    return await runner({ task, signal, blobs, clock: realClock, report: () => {} });
  }

  async function response(outcome: RunOutcome): Promise<ExecuteResponse> {
    ok(outcome.kind === "done", JSON.stringify(outcome));
    const known = readOutcome({ payload: outcome.payload, digests: [] });
    ok(known);
    ok(outcome.digests?.includes(answerDigest(known)), "the answer is among what is pinned");
    return await readAnswer(known, blobs);
  }

  test("E2: what goes into the cache is named with the result; what does not is not", async () => {
    const published = async (line: string, trial?: Trial): Promise<boolean> => {
      const outcome = await run(line, trial);
      ok(outcome.kind === "done");
      deepEqual(await blobs.missing(outcome.digests ?? []), []);
      return outcome.publish !== undefined;
    };
    equal(await published("echo hello > o", { outputPaths: ["o"] }), true);
    equal(await published("exit 3"), false);
    equal(await published("true", { doNotCache: true }), false);
    equal(await published("sleep 60", { timeoutMs: 200 }), false);
    equal(await published("mkfifo o", { outputPaths: ["o"] }), false);
  });

  test("REAPI-68: times do not run backwards, although another node's clock is a minute ahead", async () => {
    const { result } = await response(await run("true"));
    const { queuedTimestamp: queued, workerStartTimestamp: started } = result?.executionMetadata ?? {};
    ok((queued?.seconds ?? 0) <= (started?.seconds ?? 0));
    equal(result?.executionMetadata?.worker, "bench");
  });

  test("REAPI-84: an attempt that ran out of memory is retried once with more, and then is the result", async (t) => {
    if (!ports.sandbox.about.controllers.includes("memory")) return t.skip("needs a memory controller: none here");
    const hog = "head -c 80000000 /dev/zero | tail | wc -c";
    const first = await run(hog, { memoryBytes: 50e6 });
    deepEqual([first.kind, first.kind === "failed" && first.reason], ["failed", "out-of-memory"]);
    const second = await response(await run(hog, { memoryBytes: 100e6, attempt: 2 }));
    equal(second.result?.exitCode, 0);
    const third = await run(hog, { memoryBytes: 20e6, attempt: 2 });
    ok(third.kind === "done" && third.publish === undefined);
    const { status, message } = await response(third);
    deepEqual([status?.code, /memory/.test(message)], [grpcCode.resourceExhausted, true]);
    const fourth = await response(await run(`${hog}; exit 137`, { memoryBytes: 20e6, attempt: 2 }));
    deepEqual([fourth.status?.code ?? 0, fourth.result?.exitCode], [0, 137]);
  });

  /** Runs the command, then reports that it ran out of memory; and which limit it had. */
  async function hog(trial: Trial): Promise<{ readonly outcome: RunOutcome; readonly limit: number }> {
    let limit = -1;
    const open = async (signal?: AbortSignal): Promise<Attempt> => {
      const attempt = await ports.sandbox.attempt(signal);
      const run = attempt.run.bind(attempt);
      attempt.run = async (command, stop) => {
        limit = command.limits.memoryBytes ?? 0;
        const unlimited = { ...command, limits: { ...command.limits, memoryBytes: 0 } };
        return { ...(await run(unlimited, stop)), outOfMemory: true, exitCode: 0, message: "it ran out of memory" };
      };
      return attempt;
    };
    const sandbox = { about: ports.sandbox.about, attempt: open } as unknown as Sandbox;
    return { outcome: await run("true", { memoryBytes: 50e6, ...trial, with: { sandbox } }), limit };
  }

  test("REAPI-84: only an attempt that ran out of memory earns the task more, whatever ended the others", async () => {
    const isTriedAgain = ({ kind }: RunOutcome): boolean => kind === "failed";
    const after = async (trial: Trial): Promise<readonly [number, boolean]> => {
      const { limit, outcome } = await hog(trial);
      return [limit, isTriedAgain(outcome)];
    };
    deepEqual(await after({ attempt: 1, outOfMemory: 0 }), [50e6, true]);
    // Its worker was lost before: it has not run out of memory yet.
    deepEqual(await after({ attempt: 2, outOfMemory: 0 }), [50e6, true]);
    deepEqual(await after({ attempt: 3, outOfMemory: 0 }), [50e6, true]);
    deepEqual(await after({ attempt: 2, outOfMemory: 1 }), [100e6, false]);
    deepEqual(await after({ attempt: 3, outOfMemory: 2 }), [100e6, false]);
  });

  test("REAPI-84: if the shard does not count them, any second attempt gets more memory", async () => {
    deepEqual((await hog({ attempt: 1 })).limit, 50e6);
    const { limit, outcome } = await hog({ attempt: 2 });
    deepEqual([limit, outcome.kind], [100e6, "done"]);
  });

  test("a full disk is reported with what was printed, a log and when to try again", async () => {
    const { sandbox } = ports;
    const filling = {
      about: sandbox.about,
      attempt: async (signal: AbortSignal) => {
        const attempt = await sandbox.attempt(signal);
        const ran = attempt.run.bind(attempt);
        const full = { why: "disk-full", exitCode: 137, message: "the disk was nearly full" } as const;
        return Object.assign(attempt, {
          run: async (...given: Parameters<typeof ran>) => ({ ...(await ran(...given)), ...full }),
        });
      },
    } as unknown as Sandbox;
    const trial = { with: { sandbox: filling }, outputPaths: ["o"] };
    equal((await run("echo so far; echo > o", trial)).kind, "failed", "a second chance");
    const { status, result, serverLogs } = await response(await run("echo so far; echo > o", { ...trial, attempt: 2 }));
    ok(status?.code === grpcCode.resourceExhausted && result?.stdoutDigest);
    equal(detailsOf(new GrpcError(status.code, status.message, status.details), RetryInfo).length, 1);
    deepEqual([result.outputFiles, result.stdoutDigest.sizeBytes], [[], "so far\n".length]);
    equal(result.executionMetadata?.worker, "bench");
    equal(serverLogs.size, 1);
  });

  test("REAPI-52: inputs that disappear while they are fetched are MISSING, not our failure", async () => {
    const content = randomUUID();
    const lost = digestOf(Buffer.from(content));
    const losing: BlobStore = {
      ...blobs,
      prompt: undefined as never,
      async *read(digest, ...rest) {
        if (digest === lost) throw new Fault("not-found", "read blob", { digest });
        yield* blobs.read(digest, ...rest);
      },
    };
    const thief: Store = { ...store, forTenant: (tenant) => ({ ...store.forTenant(tenant), blobs: losing }) };
    const { status } = await response(await run("true", { files: { f: content }, with: { store: thief } }));
    equal(status?.code, grpcCode.failedPrecondition);
    const [failure] = detailsOf(new GrpcError(9, "", status?.details), PreconditionFailure);
    deepEqual(
      failure?.violations.map(({ type, subject }) => [type, subject]),
      [["MISSING", blobSubject(lost)]],
    );
  });

  test("B5: inputs of another tenant are missing, although the bytes are here", async () => {
    const asBakery: Store = { ...store, forTenant: () => store.forTenant("bakery") };
    const task = await grant("true", { files: { f: randomUUID() } });
    const { action } = JSON.parse(task.spec) as ActionSpec;
    await store.forTenant("bakery").blobs.write(action, await wholeBlob(blobs, action));
    const runner = actionRunners({ ...ports, store: asBakery })[actionKind];
    const signal = new AbortController().signal;
    const outcome = await runner?.({ task, signal, blobs, clock: realClock, report: () => {} });
    ok(outcome?.kind === "done");
    equal(readOutcome({ payload: outcome.payload, digests: [] })?.code, grpcCode.failedPrecondition);
  });

  test("a failure of the environment is retried, and says nothing of the action", async () => {
    const down: BlobStore = {
      ...blobs,
      prompt: undefined as never,
      missing: () => Promise.reject(new Fault("unavailable", "ask store")),
    };
    const broken: Store = { ...store, forTenant: (tenant) => ({ ...store.forTenant(tenant), blobs: down }) };
    await rejects(run("true", { files: { f: "1" }, with: { store: broken } }), /unavailable/);
  });

  test("when a stop from outside is reported, nothing of the action runs any more", async () => {
    const stop = new AbortController();
    const mark = randomUUID();
    const running = run(`echo ${mark} > begun; sleep 300 & sleep 301`, { signal: stop.signal });
    const isAlive = (): boolean => commandLines().includes("sleep 301");
    await until("it runs", isAlive);
    stop.abort(new Stopped("cancelled"));
    await rejects(running, (error) => error instanceof Stopped);
    equal(isAlive(), false);
  });

  test("REAPI-85: of too much output, the beginning and the end are kept", async () => {
    const { result } = await response(await run("echo first; head -c 1000000 /dev/zero | tr '\\0' x; echo last"));
    const { hash = "", sizeBytes = 0 } = result?.stdoutDigest ?? {};
    ok(sizeBytes > 0 && sizeBytes <= 101_000, `${sizeBytes} bytes`);
    const text = Buffer.from(await wholeBlob(blobs, `${hash}/${sizeBytes}`)).toString();
    match(text, /^first\n/);
    match(text, /last\n$/);
  });
});

function commandLines(): readonly string[] {
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      return [readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim()];
    } catch {
      return [];
    }
  });
}
