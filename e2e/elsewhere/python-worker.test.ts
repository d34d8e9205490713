/** The work protocol as third parties use it: the example worker in Python runs the tasks of a real node. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { createWorkerToken, listWorkers, removeWorker } from "#api/workers.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";
import type { JobView, TaskView } from "#kernel/read/query.ts";
import { shardOf, type Order, type WorkClient } from "#shard/client/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { freePort } from "#testing/free-port.ts";
import { findPython } from "#testing/python.ts";
import { until } from "#testing/until.ts";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";

const example = join(import.meta.dirname, "..", "..", "examples", "python-worker");
const python = findPython();
const patience = { limitMs: 60_000, everyMs: 20 };
const limited = { timeout: 120_000 };

/** A Python program of the example, with its whole output. Ends with the test, by its pid. */
class Program implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly ended: Promise<number | null>;
  text = "";

  constructor(token: string, file: string, ...args: readonly string[]) {
    const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1", MILLRACE_TOKEN: token };
    this.#child = spawn(python.program, [join(example, file), ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on("data", (chunk: Buffer) => (this.text += chunk.toString()));
    this.ended = new Promise((resolve) => this.#child.once("close", resolve));
  }

  async says(words: string): Promise<void> {
    const hasEnded = (): boolean => this.#child.exitCode !== null || this.#child.signalCode !== null;
    await until(`Python says ${JSON.stringify(words)}`, () => this.text.includes(words) || hasEnded(), patience);
    ok(this.text.includes(words), `it ended without ${JSON.stringify(words)}:\n${this.text}`);
  }

  terminate(): void {
    this.#child.kill("SIGTERM");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.ended;
  }
}

type Call = readonly [name: string, ...args: unknown[]];
type Wishes = { readonly leaseMs?: number; readonly attemptMs?: number; readonly shardKey?: string };

let orders = 0;

/** A job of one stage: each call is a task that only a Python worker can run. */
function orderOf(calls: readonly Call[], { leaseMs = 3_000, attemptMs = 60_000, shardKey }: Wishes = {}): Order {
  orders += 1;
  const template = {
    kind: "python.call",
    requires: ["lang=python"],
    leaseMs,
    attemptsMax: 3,
    retryOn: "infrastructure",
    backoffMs: 50,
    backoffMsMax: 50,
    queueMs: 100_000,
    attemptMs,
    effects: "pure",
    speculate: false,
    graceMs: 60_000,
  } as const;
  const tasks = calls.map(([call, ...args], i) => ({ key: String(i), spec: JSON.stringify({ call, args }) }));
  const stage = { needs: [], after: "success", failFast: false, mayFail: false, parallelMax: 0 } as const;
  return {
    shardKey: shardKey ?? `job ${orders}`,
    tenant: "t",
    door: "python",
    name: "from TypeScript",
    payloadHash: "",
    priority: 0,
    spec: "",
    stages: [{ ...stage, name: "only", tasks: { template, tasks } }],
    deadlineMs: 110_000,
  };
}

async function start(path: string, port: number, journal: "memory" | "sqlite"): Promise<Running> {
  const config = Config.parse({
    cluster: { shards: 3 },
    journal: { kind: journal },
    blobs: { kind: "memory" },
    edge: { listen: [`127.0.0.1:${port}`] },
    worker: { enabled: false },
  });
  return await startNode(config, dataFolder(path), { log: () => {} });
}

async function ended(client: WorkClient, jobId: string): Promise<JobView> {
  for await (const _message of client.watch(jobId, AbortSignal.timeout(patience.limitMs)));
  return (await client.job(jobId)).view;
}

async function running(client: WorkClient, jobId: string): Promise<void> {
  const isRunning = ({ phase }: TaskView): boolean => phase === "RUNNING";
  await until("the task runs", async () => (await client.job(jobId)).view.tasks.every(isRunning), patience);
}

const results = ({ tasks }: JobView): unknown[] =>
  tasks.map(({ result }) => (result ? (JSON.parse(result.payload) as unknown) : undefined));

describe("a worker in Python", { skip: python.skip }, () => {
  let path: string;
  let port: number;
  let node: Running;
  const worker = (...args: readonly string[]) => new Program(node.owner, "worker.py", `127.0.0.1:${port}`, ...args);

  before(async () => {
    path = await mkdtemp(join(tmpdir(), "millrace-python-"));
    port = await freePort();
    node = await start(path, port, "memory");
  });
  after(async () => {
    await node.stop();
    clearAway(path);
  });

  test("commits what Python computed, and reports its steps", limited, async () => {
    await using _worker = worker();
    const order = orderOf([
      ["primes", 20],
      ["word_counts", "to be or not to be"],
    ]);
    const view = await ended(node.client, (await node.client.submit(order)).jobId);
    equal(view.phase, "SUCCEEDED");
    deepEqual(results(view), [[2, 3, 5, 7, 11, 13, 17, 19], { be: 2, not: 1, or: 1, to: 2 }]);
    deepEqual(
      view.tasks[1]?.steps.filter(({ status }) => status === "succeeded").map(({ name }) => name),
      ["word_counts", "split", "count"],
    );
  });

  test("says why a task failed", limited, async () => {
    await using _worker = worker();
    const calls: readonly Call[] = [["divide", 1, 0], ["no_such_function"]];
    const view = await ended(node.client, (await node.client.submit(orderOf(calls))).jobId);
    equal(view.phase, "FAILED");
    deepEqual(
      view.tasks.map(({ lastFailure, attempts }) => ({ ...lastFailure, attempts })),
      [
        { reason: "user-failure", message: "ZeroDivisionError: division by zero", attempts: 1 },
        { reason: "user-failure", message: "there is no function no_such_function", attempts: 1 },
      ],
    );
    const slow = orderOf([["nap", 100]], { attemptMs: 300 });
    const late = await ended(node.client, (await node.client.submit(slow)).jobId);
    equal(late.tasks[0]?.lastFailure?.reason, "timed-out");
  });

  test("stops what was cancelled", limited, async () => {
    await using stopping = worker();
    const { jobId } = await node.client.submit(orderOf([["nap", 100]], { leaseMs: 900 }));
    await running(node.client, jobId);
    await node.client.cancel(jobId, "not needed any more");
    const view = await ended(node.client, jobId);
    deepEqual([view.phase, view.tasks[0]?.phase], ["CANCELLED", "CANCELLED"]);
    await stopping.says("Fail FAIL_REASON_CANCELLED");
  });

  test("shares the work with another, and releases what it cannot run", limited, async () => {
    const keys = [0, 1, 2].map(
      (shard) => Array.from({ length: 99 }, (_, i) => `key ${i}`).find((key) => shardOf(key, 3) === shard) ?? "",
    );
    await using one = worker("--slots", "1");
    await using two = worker("--slots", "1");
    await Promise.all([one.says("offers lang=python"), two.says("offers lang=python")]);
    // Idle workers wait at all three shards: with one slot each, one of them gets more than it can run.
    await until("something was given back", async () => {
      const jobs = await Promise.all(keys.map((shardKey) => node.client.submit(orderOf([["nap", 0.3]], { shardKey }))));
      const views = await Promise.all(jobs.map(({ jobId }) => ended(node.client, jobId)));
      deepEqual(views.flatMap(results), [0.3, 0.3, 0.3]);
      return /: Release/.test(one.text + two.text);
    });
    match(one.text, /: Commit/);
    match(two.text, /: Commit/);
  });

  test("releases everything when it is asked to leave", limited, async () => {
    await using leaving = worker("--stop-within", "0");
    const { jobId } = await node.client.submit(orderOf([["nap", 1]]));
    await running(node.client, jobId);
    leaving.terminate();
    equal(await leaving.ended, 0, leaving.text);
    match(leaving.text, /Fail FAIL_REASON_PREEMPTED/);
    await using _other = worker();
    const view = await ended(node.client, jobId);
    deepEqual([view.phase, view.tasks[0]?.attempts], ["SUCCEEDED", 2]);
  });

  test("comes back under its name after kill -9, and does not wait for its old lease", limited, async () => {
    const { jobId } = await node.client.submit(orderOf([["nap", 1]], { leaseMs: 600_000 }));
    {
      await using _killed = worker("--name", "phoenix");
      await running(node.client, jobId);
    }
    await using again = worker("--name", "phoenix");
    equal((await ended(node.client, jobId)).phase, "SUCCEEDED");
    match(again.text, /giving back/);
  });

  test(
    "registers with a token, is the same worker after a restart, and leaves when it is removed",
    limited,
    async () => {
      const headers = { authorization: `Bearer ${node.owner}` };
      const ask: Fetch = (to, init) =>
        fetch(`http://127.0.0.1:${port}${to}`, { ...init, headers: { ...(init.headers as object), ...headers } });
      const body = { name: "snake", labels: ["lang=python"] };
      const { token } = await callEndpoint(ask, createWorkerToken, { body, tenant: "t" });
      const registered = () =>
        new Program(token, "worker.py", `127.0.0.1:${port}`, "--data", join(path, "snake"), "--slots", "1");
      {
        await using one = registered();
        const view = await ended(node.client, (await node.client.submit(orderOf([["primes", 12]]))).jobId);
        deepEqual(results(view), [[2, 3, 5, 7, 11]]);
        match(one.text, /snake-[0-9a-f]{12} offers lang=python/);
        ok(!one.text.includes(token.slice(0, 30)), "no token in its log");
      }
      await using again = registered();
      await again.says("offers lang=python");
      const { items } = await callEndpoint(ask, listWorkers, { query: {} });
      deepEqual(
        items.map(({ name }) => name.replace(/-.*/, "")),
        ["snake"],
      );
      await callEndpoint(ask, removeWorker, { params: { id: items[0]?.id ?? "" }, tenant: "t" });
      await again.ended;
      await using late = registered();
      equal(await late.ended, 1);
      match(late.text, /worker: the worker was removed/);
    },
  );

  test("ends with a message when its request is invalid", limited, async () => {
    await using wrong = worker("--label", "x".repeat(300));
    equal(await wrong.ended, 1);
    match(wrong.text, /worker: Reserve: limit: /);
  });

  test("need not be alone: a program in Python submits, too, and gets the outcome", limited, async () => {
    await using _worker = worker();
    await using submitted = new Program(node.owner, "submit.py", `127.0.0.1:${port}`, "primes", "12");
    equal(await submitted.ended, 0, submitted.text);
    match(submitted.text, /^j\w-\w+ submitted\nSUCCEEDED \[2, 3, 5, 7, 11\]\n$/);
  });
});

test("a worker in Python continues after the node was restarted", { ...limited, skip: python.skip }, async () => {
  const path = await mkdtemp(join(tmpdir(), "millrace-python-"));
  const port = await freePort();
  let node = await start(path, port, "sqlite");
  try {
    await using worker = new Program(node.owner, "worker.py", `127.0.0.1:${port}`);
    const { jobId } = await node.client.submit(orderOf([["nap", 4]], { leaseMs: 10_000 }));
    await running(node.client, jobId);
    const stoppedAtMs = performance.now();
    await node.stop();
    ok(performance.now() - stoppedAtMs < 5_000, "a worker that waits for work does not hold up a node that stops");
    await worker.says("the node is away");
    node = await start(path, port, "sqlite");
    const view = await ended(node.client, jobId);
    deepEqual([view.phase, view.tasks[0]?.attempts, ...results(view)], ["SUCCEEDED", 1, 4]);
    await worker.says("the node is back");
    const next = await ended(node.client, (await node.client.submit(orderOf([["primes", 5]]))).jobId);
    deepEqual(results(next), [[2, 3]]);
  } finally {
    await node.stop();
    clearAway(path);
  }
});
