// Signals to a command that runs, by the command line and over HTTP: they reach its process alone, once and in order,
// they are acknowledged, and the audit trail says who sent them.
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { listAudit } from "#api/audit.ts";
import { logsOfJob, showJob, signalJob, submitJob, whyJob } from "#api/jobs.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";
import { cliLine } from "#testing/cli-line.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";

const root = mkdtempSync(join(tmpdir(), "millrace-signals-"));
after(() => clearAway(root));
const patience = { limitMs: 90_000, everyMs: 100 };

/** Says what it is told, and ends on USR1; a child that it waits for must not be ended by the signals. */
const script = `
trap 'echo "told HUP"' HUP
trap 'echo "told USR1"; kill $child; cat "$MILLRACE_SIGNALS"; exit 0' USR1
sleep 300 & child=$!
echo ready
while kill -0 $child 2>/dev/null; do wait $child; done
echo "the child ended"; exit 9
`;

describe("signals to a running command", { timeout: 200_000 }, () => {
  let node: NodeProcess;
  const ask: Fetch = (path, init) =>
    fetch(`http://${node.address}${path}`, { ...init, headers: { ...(init.headers as object), ...node.headers } });
  const show = (job: string) => callEndpoint(ask, showJob, { params: { job } });
  const logs = async (job: string): Promise<string> => {
    let text = "";
    for await (const { data } of await callEndpoint(ask, logsOfJob, { params: { job }, query: {} })) text += data.text;
    return text;
  };

  before(async () => {
    node = await NodeProcess.open(join(root, "node"), { worker: { enabled: true, slots: 2 }, cluster: { shards: 2 } });
  });
  after(async () => await node[Symbol.asyncDispose]());

  test("reach its process, and are in its file with who sent them", async () => {
    const stages = [{ name: "serve", run: script, signals: { reload: "HUP", stop: "USR1", note: "file" } }];
    const { job } = await callEndpoint(ask, submitJob, { body: { document: { stages } } });
    await until("it runs", async () => (await logs(job)).includes("ready"), patience);
    const sent = await cliLine(node.folder, "job", "signal", job, "serve", "reload", "--payload", "v2");
    match(sent.out.join(), /serve: reload recorded/);
    await until("it was told", async () => (await logs(job)).includes("told HUP"), patience);
    const named = () => show(job).then(({ tasks }) => tasks[0]?.steps?.map(({ name }) => name) ?? []);
    await until("it is shown", async () => (await named()).includes("signal reload"), patience);
    const acknowledged = async (): Promise<boolean> => {
      const { tasks } = await callEndpoint(ask, whyJob, { params: { job } });
      return tasks.length === 1 && tasks[0]?.pending === undefined;
    };
    await until("the shard knows that it arrived", acknowledged, patience);
    const refused = await ask(`/v1/jobs/${job}/signal`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ stage: "serve", name: "other" }),
    });
    equal(refused.status, 403);
    for (const name of ["note", "stop"])
      await callEndpoint(ask, signalJob, { params: { job }, body: { stage: "serve", name, payload: `for ${name}` } });
    await until("it has ended", async () => (await show(job)).endedAt !== undefined, patience);
    const said = await logs(job);
    equal((await show(job)).phase, "SUCCEEDED", said);
    ok(said.split("told HUP").length === 2 && said.split("told USR1").length === 2, said);
    const lines = said.split("\n").filter((line) => line.startsWith("{"));
    const taken = lines.map((line) => JSON.parse(line) as { name: string; payload: string; by: string; at: string });
    deepEqual(
      taken.map(({ name, payload }) => [name, payload]),
      [
        ["reload", "v2"],
        ["note", "for note"],
        ["stop", "for stop"],
      ],
    );
    ok(taken.every((one) => one.by !== "" && Date.parse(one.at) > 0));
    const { items } = await callEndpoint(ask, listAudit, { query: {} });
    const signals = items.filter(({ action }) => action === "work.signal");
    ok(signals.length >= 3 && signals.every(({ who }) => who.name === taken[0]?.by), JSON.stringify(signals));
  });
});
