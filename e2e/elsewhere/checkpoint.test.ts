// Checkpoints that a command records itself, with two real workers elsewhere: the next attempt goes on from the last
// one when a worker is killed with -9, and when a worker is asked to leave.
import { equal, match, ok } from "node:assert/strict";
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { logsOfJob, showJob, submitJob } from "#api/jobs.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { RegisteredProcess } from "./worker-process.ts";

const root = mkdtempSync(join(tmpdir(), "millrace-checkpoint-"));
after(() => clearAway(root));
const millrace = `${process.execPath} ${join(import.meta.dirname, "../../src/cli/main.ts")}`;
const token = `runner-${"0123456789".repeat(4)}`;
const labels = ["door=shell", "os=*", "arch=*", "pool=*"];
const tokens = [{ name: "runner", tenant: "*", roles: ["executor"], labels, sha256: tokenSha256(token) }];
const patience = { limitMs: 120_000, everyMs: 100 };

/** Counts to five with a checkpoint after each; the first attempt stops at three and waits. */
const counting = (said: string): string => `
n=0
if [ -n "$MILLRACE_CHECKPOINT" ]; then n=$(cat "$MILLRACE_CHECKPOINT"); fi
echo "attempt $MILLRACE_ATTEMPT goes on from $n"
while [ $n -lt 5 ]; do
  n=$((n + 1)); echo $n > state
  ${millrace} checkpoint state || exit 7
  if [ $n = 3 ] && [ $MILLRACE_ATTEMPT = 1 ]; then touch ${said}; sleep 600; fi
done
echo "counted to $n"
`;

/** Records where it is when it is asked to stop. */
const polite = (said: string): string => `
if [ -n "$MILLRACE_CHECKPOINT" ]; then echo "goes on: $(cat "$MILLRACE_CHECKPOINT")"; exit 0; fi
stop() { echo half way > state; ${millrace} checkpoint state; exit 0; }
trap stop TERM
touch ${said}
while :; do sleep 0.2; done
`;

describe("a command's checkpoints", { timeout: 280_000 }, () => {
  let node: NodeProcess;
  const workers = new Map<string, RegisteredProcess>();
  const ask: Fetch = (path, init) =>
    fetch(`http://${node.address}${path}`, { ...init, headers: { ...(init.headers as object), ...node.headers } });
  const show = (job: string) => callEndpoint(ask, showJob, { params: { job } });
  const logs = async (job: string): Promise<string> => {
    let text = "";
    for await (const { data } of await callEndpoint(ask, logsOfJob, { params: { job }, query: {} })) text += data.text;
    return text;
  };
  const submit = async (stage: object): Promise<string> => {
    const document = { stages: [{ name: "work", ...stage }] };
    return (await callEndpoint(ask, submitJob, { body: { document } })).job;
  };
  const runnerOf = async (job: string): Promise<string> => (await show(job)).tasks[0]?.executors[0] ?? "";
  const ended = async (job: string): Promise<string> => {
    await until("it has ended", async () => (await show(job)).endedAt !== undefined, patience);
    const { phase, tasks } = await show(job);
    return `${phase} after ${tasks[0]?.attempts}`;
  };
  async function start(name: string): Promise<void> {
    const file = join(root, "token");
    writeFileSync(file, `${token}\n`);
    const where = ["--server", `http://${node.address}`, "--token-file", file, "--name", `runner/${name}`];
    const one = new RegisteredProcess("", ["--data", join(root, name), "--stop-within", "2s", ...where]);
    workers.set(`runner/${name}`, await one.start().isUp());
  }
  const workerOf = async (job: string): Promise<RegisteredProcess> => {
    const worker = workers.get(await runnerOf(job));
    ok(worker, [...workers.keys()].join());
    return worker;
  };

  before(async () => {
    node = await NodeProcess.open(join(root, "node"), { cluster: { shards: 2 }, edge: { identity: { tokens } } });
    await start("one");
    await start("two");
  });
  after(async () => {
    for (const worker of workers.values()) await worker.end("SIGKILL");
    await node[Symbol.asyncDispose]();
  });

  test("a worker is killed with -9: the next attempt goes on from the last checkpoint, on the other one", async () => {
    const said = join(root, "killed");
    const job = await submit({ run: counting(said) });
    await until("it has counted to three", () => existsSync(said), patience);
    const first = await runnerOf(job);
    await (await workerOf(job)).end("SIGKILL");
    equal(await ended(job), "SUCCEEDED after 2");
    match(await logs(job), /attempt 2 goes on from 3\n[^]*counted to 5\n/);
    await start(first.slice("runner/".length));
  });

  test("a worker leaves: work with outside effects goes on elsewhere, and no attempt is used up", async () => {
    const said = join(root, "asked");
    const job = await submit({ run: polite(said), effects: "outside", attempts: 1, stop: "60s" });
    await until("it runs", () => existsSync(said), patience);
    const first = await runnerOf(job);
    await (await workerOf(job)).end("SIGTERM");
    match(await ended(job), /^SUCCEEDED/);
    match(await logs(job), /goes on: half way\n/);
    await start(first.slice("runner/".length));
  });
});
