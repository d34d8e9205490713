// What a task may do with the token that it is given, on a node and elsewhere: its own job's files and steps, while its
// claim lasts, and nothing else.
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { logsOfJob, showJob, submitJob } from "#api/jobs.ts";
import { getArtifact, listArtifacts } from "#api/task-calls.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";

const root = mkdtempSync(join(tmpdir(), "millrace-task-"));
after(() => clearAway(root));
const millrace = `${process.execPath} ${join(import.meta.dirname, "../../src/cli/main.ts")}`;
const patience = { limitMs: 60_000, everyMs: 50 };

describe("what runs as a task", { timeout: 120_000 }, () => {
  let node: NodeProcess;
  const ask: Fetch = (path, init) =>
    fetch(`http://${node.address}${path}`, { ...init, headers: { ...(init.headers as object), ...node.headers } });
  const run = async (line: string, tenant = "acme"): Promise<string> =>
    (await callEndpoint(ask, submitJob, { body: { command: ["sh", "-c", line] }, tenant })).job;
  const show = (job: string, tenant = "acme") => callEndpoint(ask, showJob, { params: { job }, tenant });
  const logs = async (job: string, tenant = "acme"): Promise<string> => {
    let text = "";
    for await (const { data } of await callEndpoint(ask, logsOfJob, { params: { job }, query: {}, tenant }))
      text += data.text;
    return text;
  };
  const ended = async (job: string, tenant = "acme"): Promise<string> => {
    await until("it has ended", async () => (await show(job, tenant)).endedAt !== undefined, patience);
    const { phase } = await show(job, tenant);
    return phase === "SUCCEEDED" ? phase : `${phase}: ${await logs(job, tenant)}`;
  };
  /** A call with the token of a task. */
  const as = (token: string, path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`http://${node.address}${path}`, { ...init, headers: { authorization: `Bearer ${token}` } });
  /** Runs until the file `name.go` is there; its token and its job. */
  const held = async (name: string, tenant = "acme"): Promise<{ readonly token: string; readonly job: string }> => {
    const file = join(root, name);
    const job = await run(`cp $MILLRACE_TOKEN_FILE ${file}; while ! test -e ${file}.go; do sleep 0.05; done`, tenant);
    await until("it runs", () => tokenIn(file) !== "", patience);
    return { token: tokenIn(file), job };
  };
  const tokenIn = (file: string): string => {
    try {
      return readFileSync(file, "utf8");
    } catch {
      return "";
    }
  };
  const go = (name: string): void => writeFileSync(join(root, `${name}.go`), "");

  before(async () => {
    node = await NodeProcess.open(join(root, "node"), { worker: { enabled: true, slots: 4 }, cluster: { shards: 2 } });
  });
  after(async () => await node[Symbol.asyncDispose]());

  test("puts, gets and lists artifacts of its job and reports steps, by the command line", async () => {
    const job = await run(
      [
        "set -e",
        "echo hello > a.txt",
        `${millrace} artifact put out/a.txt a.txt`,
        `${millrace} artifact get out/a.txt b.txt`,
        "cmp a.txt b.txt",
        `${millrace} artifact list --json`,
        `${millrace} step compile started`,
        `${millrace} step compile succeeded`,
        `${millrace} job list && exit 9 || true`,
        "env | sort",
      ].join("\n"),
    );
    equal(await ended(job), "SUCCEEDED");
    const { items } = await callEndpoint(ask, listArtifacts, { params: { job }, query: {}, tenant: "acme" });
    deepEqual(
      items.map(({ name, sizeBytes }) => [name, sizeBytes]),
      [["out/a.txt", 6]],
    );
    const answer = await callEndpoint(ask, getArtifact, { params: { job, name: "out/a.txt" }, tenant: "acme" });
    equal(await answer.text(), "hello\n");
    const said = await logs(job);
    match(said, /MILLRACE_SERVER=http/);
    ok(!said.includes("eyJ"), "no token in what it printed");
    ok(!node.log.includes("eyJ"), "and none in the node's log");
  });

  test("can call nothing else, and nothing of another job", async () => {
    const [one, other] = [await held("one"), await held("other")];
    const put = await as(one.token, "/v1/task/artifacts/secret.txt", { method: "PUT", body: "of one" });
    equal(put.status, 200);
    equal((await as(one.token, "/v1/task/artifacts/secret.txt")).status, 200);
    equal((await as(other.token, "/v1/task/artifacts/secret.txt")).status, 404, "another job's");
    const calls = [
      ["GET", "/v1/jobs"],
      ["GET", `/v1/jobs/${one.job}`],
      ["GET", `/v1/jobs/${one.job}/artifacts`],
      ["POST", `/v1/jobs/${one.job}/cancel`],
      ["GET", "/v1/secrets"],
      ["GET", "/v1/cluster"],
      ["GET", "/v1/nodes"],
      ["GET", "/v1/audit"],
      ["POST", "/v1/issuer/rotate"],
      ["GET", "/v1/task/artifacts?tenant=globex"],
      ["GET", "/metrics"],
      ["GET", "/peers"],
    ] as const;
    for (const [method, path] of calls)
      ok([403, 404, 405].includes((await as(one.token, path, { method })).status), path);
    const step = { name: "test", status: "started" };
    const reported = await fetch(`http://${node.address}/v1/task/steps`, {
      method: "POST",
      body: JSON.stringify(step),
      headers: { authorization: `Bearer ${one.token}`, "content-type": "application/json" },
    });
    equal(reported.status, 204);
    go("one");
    go("other");
    equal(await ended(one.job), "SUCCEEDED");
    // the runner's own step is reported a moment later than the process may call, and yet keeps its number
    const { tasks } = await show(one.job);
    deepEqual(tasks[0]?.steps?.map(({ step: number, name, status }) => [number, name === "test", status]).toSorted(), [
      [1, false, "succeeded"],
      [1_001, true, "started"],
    ]);
    equal(await ended(other.job), "SUCCEEDED");
  });

  test("of another tenant sees nothing either", async () => {
    const mine = await held("mine");
    const theirs = await held("theirs", "globex");
    equal((await as(mine.token, "/v1/task/artifacts/x", { method: "PUT", body: "mine" })).status, 200);
    equal((await as(theirs.token, "/v1/task/artifacts/x")).status, 404);
    const { items } = (await (await as(theirs.token, "/v1/task/artifacts")).json()) as { items: unknown[] };
    deepEqual(items, []);
    const answer = await ask(`/v1/jobs/${mine.job}/artifacts/x?tenant=globex`, { method: "GET" });
    equal(answer.status, 404, "by the name of its job");
    go("mine");
    go("theirs");
    equal(await ended(mine.job), "SUCCEEDED");
    equal(await ended(theirs.job, "globex"), "SUCCEEDED");
  });

  test("loses its rights with its claim, on connections that it used before, too", async () => {
    const { token, job } = await held("late");
    equal((await as(token, "/v1/task/artifacts/late", { method: "PUT", body: "in time" })).status, 200);
    go("late");
    equal(await ended(job), "SUCCEEDED");
    await until(
      "it is refused",
      async () => {
        const answer = await as(token, "/v1/task/artifacts/late");
        if (answer.status === 401) match(await answer.text(), /attempt that is over/);
        return answer.status === 401;
      },
      { limitMs: 60_000, everyMs: 100 },
    );
    equal((await as(token, "/v1/task/artifacts/late", { method: "PUT", body: "too late" })).status, 401);
    const kept = await callEndpoint(ask, getArtifact, { params: { job, name: "late" }, tenant: "acme" });
    equal(await kept.text(), "in time");
  });
});
