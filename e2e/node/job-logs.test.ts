// What tasks print, over HTTP: live and afterwards, from the node that runs them and from another, through losses.
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { globSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { followJob, logsOfJob, showJob, submitJob } from "#api/jobs.ts";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { isFault } from "#base/fault.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";

const root = mkdtempSync(join(tmpdir(), "millrace-logs-"));
after(() => clearAway(root));
const [ops = "", ann = "", eve = ""] = ["ops", "ann", "eve"].map((name) => `${name}-${"0123456789".repeat(4)}`);
const tokens = [
  { name: "ops", tenant: "*", roles: ["operator"], sha256: tokenSha256(ops) },
  { name: "ann", tenant: "default", roles: ["member"], sha256: tokenSha256(ann) },
  { name: "eve", tenant: "other", roles: ["member"], sha256: tokenSha256(eve) },
];
const edge = { listen: ["127.0.0.1:0"], identity: { tokens } };

const to =
  ({ edgeAddresses }: Running, token: string): Fetch =>
  (path, init) =>
    fetch(`http://${edgeAddresses[0]}${path}`, {
      ...init,
      headers: { ...(init.headers as object), authorization: `Bearer ${token}` },
    });

const statusOf = async (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => 200,
    (error: unknown) => (isFault(error) ? error.facts["status"] : error),
  );

type LogQuery = { readonly follow?: "true"; readonly task?: string };

/** Reads a job's output until it ends or is left. */
class Reader {
  text = "";
  lastEventId: string | undefined;
  isEnded = false;
  readonly #leave = new AbortController();
  readonly end: Promise<void>;

  constructor(ask: Fetch, job: string, query: LogQuery = {}, lastEventId?: string) {
    this.end = this.#read(ask, job, query, lastEventId);
  }

  async #read(ask: Fetch, job: string, query: LogQuery, lastEventId: string | undefined): Promise<void> {
    const { signal } = this.#leave;
    const resume = lastEventId === undefined ? {} : { lastEventId };
    const feed = await callEndpoint(ask, logsOfJob, { params: { job }, query, ...resume, signal });
    try {
      for await (const { id, data } of feed) {
        this.text += data.text;
        this.lastEventId = id;
      }
      this.isEnded = true;
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async leave(): Promise<void> {
    this.#leave.abort();
    await this.end;
  }
}

async function logsOf(ask: Fetch, job: string, query: LogQuery = {}): Promise<string> {
  const reader = new Reader(ask, job, query);
  await reader.end;
  return reader.text;
}

type TextLog = { readonly status: number; readonly text: string; readonly kind: string | null; readonly range: string };

/** The log of a job's only task as text. */
async function textOf(ask: Fetch, job: string, headers: Record<string, string> = {}, more = ""): Promise<TextLog> {
  const { tasks } = await callEndpoint(ask, showJob, { params: { job } });
  const response = await ask(`/v1/jobs/${job}/tasks/${tasks[0]?.task}/log${more}`, { headers });
  const [kind, range] = ["millrace-log", "content-range"].map((name) => response.headers.get(name));
  return { status: response.status, text: await response.text(), kind: kind ?? null, range: range ?? "" };
}

const run = async (ask: Fetch, ...command: string[]): Promise<string> =>
  (await callEndpoint(ask, submitJob, { body: { command } })).job;
const runFile = async (ask: Fetch, document: object): Promise<string> =>
  (await callEndpoint(ask, submitJob, { body: { document: document as Record<string, unknown> } })).job;
const ended = (ask: Fetch, job: string) => async (): Promise<boolean> =>
  (await callEndpoint(ask, showJob, { params: { job } })).endedAt !== undefined;

const patience = { limitMs: 60_000 };
/** A line for the shell that waits for a file. */
const waitFor = (file: string): string => `while ! test -e ${file}; do sleep 0.05; done`;

describe("what tasks print, on one node", { timeout: 120_000 }, () => {
  let node: Running;
  const folder = join(root, "single");
  const config = Config.parse({ cluster: { shards: 2 }, edge, worker: { slots: 4, printedMax: "4MiB" } });
  const start = async (): Promise<Running> => (node = await startNode(config, dataFolder(folder), { log: () => {} }));
  before(start);
  after(() => node.stop());
  const as = (token: string): Fetch => to(node, token);

  test("is read while they run and after they have ended, and a lost reader goes on where it was", async () => {
    const go = join(root, "go-1");
    const job = await run(as(ops), "sh", "-c", `echo one; echo zwölf >&2; ${waitFor(go)}; echo three`);
    const live = new Reader(as(ann), job, { follow: "true" });
    await until("the beginning was read", () => live.text === "one\nzwölf\n", patience);
    equal(await logsOf(as(ann), job), "one\nzwölf\n", "without follow it is what there is");
    ok(!live.isEnded);
    await live.leave();
    const resumed = new Reader(as(ann), job, { follow: "true" }, live.lastEventId);
    writeFileSync(go, "");
    await resumed.end;
    equal(resumed.text, "three\n");
    equal(await logsOf(as(ann), job), "one\nzwölf\nthree\n");
    equal(await logsOf(as(ann), job, { follow: "true" }), "one\nzwölf\nthree\n");
    await until("no stream is left", () => globSync(`${folder}/blobs/streams/*/*/*`).length === 0, patience);
  });

  test("of a command that fails is all there afterwards, and its message stays readable", async () => {
    const job = await run(as(ops), "sh", "-c", "seq 1 2000; echo broken; exit 3");
    await until("it has ended", ended(as(ops), job), patience);
    const text = await logsOf(as(ops), job);
    match(text, /^1\n2\n[^]*\n2000\nbroken\n$/);
    const { tasks, shown } = await callEndpoint(as(ops), showJob, { params: { job } });
    match(tasks[0]?.failure?.message ?? "", /^exit code 3: [^]*broken$/);
    ok(!shown.join("\n").includes("[printed"));
  });

  test("is text with ranges, while it is printed and afterwards", async () => {
    const go = join(root, "go-4");
    const job = await run(as(ops), "sh", "-c", `echo one two; ${waitFor(go)}; echo three`);
    const live = new Reader(as(ann), job, { follow: "true" });
    await until("the beginning was read", () => live.text === "one two\n", patience);
    const whole = { status: 200, text: "one two\n", kind: "live", range: "" };
    deepEqual(await textOf(as(ann), job), whole);
    const part = { status: 206, text: "two\n", kind: "live", range: "bytes 4-7/8" };
    for (const range of ["bytes=4-", "bytes=-4", "bytes=4-100"]) deepEqual(await textOf(as(ann), job, { range }), part);
    deepEqual((await textOf(as(ann), job, { range: "bytes=8-" })).range, "bytes */8");
    equal((await textOf(as(ann), job, { range: "bytes=8-" })).status, 416);
    equal((await textOf(as(ann), job, {}, "?stream=stdout")).status, 404);
    writeFileSync(go, "");
    await live.end;
    deepEqual(await textOf(as(ann), job), { ...whole, text: "one two\nthree\n", kind: "sealed" });
    const last = { status: 206, text: "three\n", kind: "sealed", range: "bytes 8-13/14" };
    deepEqual(await textOf(as(ann), job, { range: "bytes=-6" }), last);
    equal((await textOf(as(ann), job, { range: "bytes=14-" })).status, 416);
    const path = `/v1/jobs/${job}/tasks/run/log`;
    const sealed = await as(ann)(path, {});
    await sealed.body?.cancel();
    match(sealed.headers.get("content-type") ?? "", /^text\/plain/);
    equal((await as(ann)(path, { headers: { "if-none-match": sealed.headers.get("etag") ?? "" } })).status, 304);
    equal((await as(ann)(path, { headers: { range: "bytes=0-2", "if-range": '"other"' } })).status, 200);
    equal((await as(ann)(path, { method: "HEAD" })).headers.get("content-length"), "14");
    equal((await as(eve)(path, {})).status, 404);
  });

  test("of several tasks comes with the task, one of them by its name", async () => {
    const stages = [
      { name: "build", run: "echo built $MILLRACE_INDEX", count: 2 },
      { name: "test", needs: ["build"], run: "echo tested" },
    ];
    const job = await runFile(as(ops), { stages });
    const pieces: string[] = [];
    for await (const { data } of await callEndpoint(as(ops), logsOfJob, {
      params: { job },
      query: { follow: "true" },
    })) {
      ok(data.several);
      pieces.push(`${data.stage}/${data.key} ${data.text}`);
    }
    deepEqual(pieces.toSorted(), ["build/1 built 1\n", "build/2 built 2\n", "test/1 tested\n"]);
    equal(pieces.at(-1), "test/1 tested\n");
    equal(await logsOf(as(ops), job, { task: "build/2" }), "built 2\n");
    equal(await logsOf(as(ops), job, { task: "test" }), "tested\n");
    const { tasks } = await callEndpoint(as(ops), showJob, { params: { job } });
    equal(await logsOf(as(ops), job, { task: tasks[0]?.task ?? "" }), "built 1\n");
    equal(await statusOf(logsOf(as(ops), job, { task: "build" })), 400, "two have that name");
    equal(await statusOf(logsOf(as(ops), job, { task: "none" })), 404);
  });

  test("comes before the end of its task, where a job is followed with its output", async () => {
    const job = await run(as(ops), "sh", "-c", "echo hello; sleep 0.5; printf bye");
    const seen: string[] = [];
    for await (const { data } of await callEndpoint(as(ann), followJob, { params: { job }, query: { output: "true" } }))
      seen.push(data.kind === "output" ? data.text : `${data.phase} ${data.ended}`);
    deepEqual(
      [
        seen
          .slice(0, -1)
          .join("")
          .replaceAll(/RUNNING false/g, ""),
        seen.at(-1),
      ],
      ["hello\nbye", "SUCCEEDED true"],
    );
  });

  test("is whole up to the limit; beyond it the beginning and the end stay", async () => {
    const print = async (bytes: number): Promise<string> => {
      const job = await run(as(ops), "sh", "-c", `yes 0123456 | head -c ${bytes}; echo last`);
      await until("it has ended", ended(as(ops), job), patience);
      return await logsOf(as(ops), job);
    };
    const whole = await print(3_000_000);
    ok(whole === `${"0123456\n".repeat(375_000)}last\n`, `${whole.length}`);
    const cut = await print(9_000_000);
    ok(cut.length < 4_300_000 && cut.length > 4_100_000, `${cut.length}`);
    match(cut.slice(-70_000), /^[0-6\n]*\.\.\. \d+ bytes left out \.\.\.\n[^]*last\n$/);
  });

  test("of another tenant's job, or of a task of another job, is as of none", async () => {
    const job = await run(as(ops), "echo", "secret");
    await until("it has ended", ended(as(ops), job), patience);
    const other = await run(as(ops), "echo", "other");
    for (const path of ["logs", "logs?follow=true", "follow", "follow?output=true"])
      equal((await as(eve)(`/v1/jobs/${job}/${path}`, {})).status, 404, path);
    const { tasks } = await callEndpoint(as(ops), showJob, { params: { job } });
    equal(await statusOf(logsOf(as(ann), other, { task: tasks[0]?.task ?? "" })), 404);
    equal(await statusOf(callEndpoint(as(ann), submitJob, { body: { command: ["true"] } })), 403, "for operators");
  });

  test("of an attempt that died with its node is there as far as it was acknowledged", async () => {
    const job = await run(as(ops), "sh", "-c", `echo attempt $MILLRACE_ATTEMPT; ${waitFor(join(root, "go-2"))}`);
    const live = new Reader(as(ops), job, { follow: "true" });
    await until("the beginning was read", () => live.text === "attempt 1\n", patience);
    await callEndpoint(as(ops), submitJob, { body: { command: ["true"] } });
    await live.leave();
    await as(ops)(`/v1/jobs/${job}/cancel`, {
      method: "POST",
      body: "{}",
      headers: { "content-type": "application/json" },
    });
    await until("it was cancelled", ended(as(ops), job), patience);
    await until("its stream is kept", () => readdirSync(join(folder, "kept-streams")).length > 0, patience);
    await until("history has it", async () => (await node.client.attempts(job)).length > 0, patience);
    equal(await logsOf(as(ops), job), "attempt 1\n");
    await node.stop();
    await start();
    equal(await logsOf(as(ops), job), "attempt 1\n", "and after a restart");
  });
});

describe("a job that is submitted over HTTP", { timeout: 60_000 }, () => {
  test("is recorded once for an Idempotency-Key, also by a node that restarted", async () => {
    const folder = join(root, "once");
    const config = Config.parse({ cluster: { shards: 4 }, edge, worker: { enabled: false } });
    let node = await startNode(config, dataFolder(folder), { log: () => {} });
    try {
      const submit = (command: string[], idempotencyKey = "key-1") =>
        callEndpoint(to(node, ops), submitJob, { body: { command }, idempotencyKey });
      const first = await submit(["echo", "1"]);
      equal(first.created, true);
      deepEqual(await submit(["echo", "1"]), first, "the first answer again");
      equal(await statusOf(submit(["echo", "2"])), 422);
      await node.stop();
      node = await startNode(config, dataFolder(folder), { log: () => {} });
      deepEqual(await submit(["echo", "1"]), first, "and again, from the journal");
      equal(await statusOf(submit(["echo", "2"], "key-1")), 422);
      ok((await submit(["echo", "2"], "key-2")).created);
      for (const body of [{}, { command: ["a"], document: {} }, { document: { stages: [] } }, { document: "a: [" }])
        equal(await statusOf(callEndpoint(to(node, ops), submitJob, { body })), 400);
      const mistyped = { document: "stages:\n  - { name: a, sleeep: 1s }\n" };
      const { title } = (await (
        await to(node, ops)("/v1/jobs", {
          method: "POST",
          body: JSON.stringify(mistyped),
          headers: { "content-type": "application/json" },
        })
      ).json()) as { readonly title: string };
      match(title, /sleeep \(line 2\): there is no such setting \(did you mean sleep\?\)/);
    } finally {
      await node.stop();
    }
  });
});

test("what tasks print on one node is read from another", { timeout: 120_000 }, async () => {
  const shared = join(root, "cluster");
  mkdirSync(join(shared, "blobs"), { recursive: true });
  const config = (enabled: boolean) =>
    Config.parse({
      cluster: { shards: 2, ownerLease: "3s" },
      journal: { kind: "sqlite", directory: join(shared, "journal") },
      blobs: { kind: "directory", directory: join(shared, "blobs") },
      node: { stopWithin: "100ms" },
      edge,
      worker: { enabled },
    });
  await using undo = new AsyncDisposableStack();
  const start = async (name: string, works: boolean): Promise<Running> => {
    const started = await startNode(config(works), dataFolder(join(shared, name)), { log: () => {} });
    undo.defer(() => started.stop());
    return started;
  };
  await start("one", true);
  const two = await start("two", false);
  const go = join(root, "go-3");
  const viaTwo = to(two, ops);
  const job = await run(viaTwo, "sh", "-c", `echo begun; ${waitFor(go)}; echo ended`);
  const live = new Reader(viaTwo, job, { follow: "true" });
  await until("it was read from afar", () => live.text === "begun\n", patience);
  equal((await textOf(viaTwo, job, { range: "bytes=-3" })).text, "un\n");
  writeFileSync(go, "");
  await live.end;
  equal((await textOf(viaTwo, job, { range: "bytes=-3" })).text, "ed\n");
  equal(live.text, "begun\nended\n");
  equal(await logsOf(viaTwo, job), "begun\nended\n");
});
