// A worker on a machine that only reaches out, as a real process: killed, stopped past its lease, its node restarted.
import { equal, match, ok } from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { logsOfJob, showJob, submitJob } from "#api/jobs.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { endChild } from "#testing/end-child.ts";
import { until } from "#testing/until.ts";

const root = mkdtempSync(join(tmpdir(), "millrace-elsewhere-"));
after(() => clearAway(root));
const main = join(import.meta.dirname, "../../src/cli/main.ts");
const token = `runner-${"0123456789".repeat(4)}`;
const tokens = [
  {
    name: "runner",
    tenant: "*",
    roles: ["executor"],
    labels: ["door=shell", "os=*", "arch=*", "pool=*", "place=*"],
    sha256: tokenSha256(token),
  },
];
const patience = { limitMs: 60_000, everyMs: 50 };

/** A worker of one name; what runs in it ends with it. */
class WorkerProcess {
  readonly #folder: string;
  readonly #args: readonly string[];
  #child: ChildProcess | undefined;
  said = "";

  constructor(name: string, server: string) {
    this.#folder = join(root, name);
    const file = join(root, "token");
    writeFileSync(file, `${token}\n`);
    this.#args = [
      "worker",
      "--server",
      server,
      "--token-file",
      file,
      "--name",
      `runner/${name}`,
      "--data",
      this.#folder,
    ];
  }

  async start(): Promise<this> {
    this.said = "";
    const child = spawn(process.execPath, [main, ...this.#args, "--labels", "place=elsewhere"], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => (this.said += String(part)));
    await until(
      "the worker is there",
      () => {
        if (child.exitCode !== null) throw new Error(`the worker ended by itself: ${this.said}`);
        return this.said.includes("slots");
      },
      patience,
    );
    return this;
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }

  async end(how: NodeJS.Signals): Promise<void> {
    this.#child?.kill("SIGCONT");
    await endChild(this.#child, how);
  }
}

describe("a worker elsewhere", { timeout: 280_000 }, () => {
  let node: NodeProcess;
  let one: WorkerProcess;
  const ask: Fetch = (path, init) =>
    fetch(`http://${node.address}${path}`, { ...init, headers: { ...(init.headers as object), ...node.headers } });
  const run = async (line: string): Promise<string> =>
    (await callEndpoint(ask, submitJob, { body: { command: ["sh", "-c", line] } })).job;
  const show = (job: string) => callEndpoint(ask, showJob, { params: { job } });
  const ended = (job: string) => async (): Promise<boolean> => (await show(job)).endedAt !== undefined;
  const logs = async (job: string): Promise<string> => {
    let text = "";
    for await (const { data } of await callEndpoint(ask, logsOfJob, { params: { job }, query: {} })) text += data.text;
    return text;
  };

  before(async () => {
    node = await NodeProcess.open(join(root, "node"), { cluster: { shards: 2 }, edge: { identity: { tokens } } });
    one = await new WorkerProcess("one", `http://${node.address}`).start();
  });
  after(async () => {
    await one.end("SIGKILL");
    await node[Symbol.asyncDispose]();
  });

  test("runs commands, and what they print is read from the node: short, long, and of a failure", async () => {
    const short = await run("echo hello; echo $MILLRACE_ATTEMPT");
    await until("it has ended", ended(short), patience);
    equal((await show(short)).phase, "SUCCEEDED");
    equal(await logs(short), "hello\n1\n");
    const long = await run("yes 0123456 | head -c 3000000; echo last");
    await until("it has ended", ended(long), patience);
    ok((await logs(long)) === `${"0123456\n".repeat(375_000)}last\n`);
    const failed = await run("echo broken; exit 3");
    await until("it has ended", ended(failed), patience);
    equal((await show(failed)).phase, "FAILED");
    equal(await logs(failed), "broken\n");
  });

  test("goes on through a restart of its node: no line is lost and none comes twice", async () => {
    const job = await run("for i in $(seq 1 80); do echo line $i; sleep 0.1; done");
    await until("some was printed", async () => (await logs(job)).includes("line 5\n"), patience);
    await node.kill();
    await node.start();
    await until("it has ended", ended(job), patience);
    const { phase, tasks } = await show(job);
    equal(`${phase} ${tasks[0]?.attempts}`, "SUCCEEDED 1");
    equal(await logs(job), Array.from({ length: 80 }, (_, i) => `line ${i + 1}\n`).join(""));
  });

  test("that is killed leaves what it printed, and another goes on", async () => {
    const job = await run("echo attempt $MILLRACE_ATTEMPT; test $MILLRACE_ATTEMPT -gt 1 || sleep 100");
    await until("it was printed", async () => (await logs(job)) === "attempt 1\n", patience);
    await one.end("SIGKILL");
    equal(await logs(job), "attempt 1\n", "without the worker");
    const two = await new WorkerProcess("two", `http://${node.address}`).start();
    try {
      await until("it has ended", ended(job), patience);
      equal((await show(job)).phase, "SUCCEEDED");
      match(await logs(job), /attempt 2\n$/);
    } finally {
      await two.end("SIGKILL");
      await one.start();
    }
  });

  test("that was stopped past its lease and continued does not disturb who took over", async () => {
    const job = await run("for i in $(seq 1 30); do echo $MILLRACE_ATTEMPT line $i; sleep 0.1; done");
    await until("some was printed", async () => (await logs(job)).includes("1 line 5\n"), patience);
    one.signal("SIGSTOP");
    const two = await new WorkerProcess("three", `http://${node.address}`).start();
    try {
      await until("another attempt runs", async () => (await logs(job)).includes("2 line 1\n"), patience);
      one.signal("SIGCONT");
      await until("it has ended", ended(job), patience);
      const { phase, tasks } = await show(job);
      equal(`${phase} ${tasks[0]?.attempts}`, "SUCCEEDED 2");
      equal(await logs(job), Array.from({ length: 30 }, (_, i) => `2 line ${i + 1}\n`).join(""));
    } finally {
      one.signal("SIGCONT");
      await two.end("SIGKILL");
    }
    const next = await run("echo still there");
    await until("the one that was stopped works on", ended(next), patience);
    equal(await logs(next), "still there\n");
  });

  test("leaves politely: what runs is finished first", async () => {
    const job = await run("echo begun; sleep 1; echo done");
    await until("it runs", async () => (await logs(job)) === "begun\n", patience);
    await one.end("SIGTERM");
    await until("it has ended", ended(job), patience);
    equal((await show(job)).phase, "SUCCEEDED");
    equal(await logs(job), "begun\ndone\n");
    await one.start();
  });
});
