import { deepEqual, equal, match } from "node:assert/strict";
import { describe, test } from "node:test";
import type { RemoteClient } from "#door/command.ts";
import { Fault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { testCluster } from "#shard/testing/client.ts";
import type { World } from "#door/command.ts";
import { runLine } from "./line.ts";

async function scene() {
  const clock = new ManualClock();
  const { client, shards } = await testCluster(clock);
  const remote: RemoteClient = {
    work: client,
    status: async () => ({ node: "n", address: "a", state: "up", shards: [] }),
    [Symbol.asyncDispose]: async () => {},
  };
  const run = async (...args: string[]) => {
    const out: string[] = [];
    const notes: string[] = [];
    const world: World = {
      env: {},
      isTerminal: false,
      out: (line) => out.push(line),
      note: (line) => notes.push(line),
      progress: () => {},
      http: () => Promise.reject(new Error("not asked over HTTP")),
      connect: async () => remote,
    };
    return { code: await runLine(args, world), out, notes };
  };
  return { run, client, shards, clock };
}

describe("the commands", () => {
  test("submit, show, list, ask why and cancel a job, in words and in JSON", async () => {
    const { run } = await scene();
    const submitted = await run("job", "submit", "--name", "mine", "--", "echo", "hi");
    deepEqual([submitted.code, submitted.out], [0, ["j0-1 submitted; watch it with: millrace job watch j0-1"]]);
    const shown = await run("job", "show", "j0-1");
    match(shown.out[0] ?? "", /^j0-1 {2}RUNNING {2}mine/);
    const listed = await run("job", "list", "--json");
    equal((JSON.parse(listed.out[0] ?? "") as { jobId: string }).jobId, "j0-1");
    const why = await run("job", "why", "j0-1");
    equal(why.out[0], "t0-1  run/1  READY: no worker is there");
    const cancelled = await run("job", "cancel", "j0-1", "--json");
    deepEqual(JSON.parse(cancelled.out[0] ?? ""), { jobId: "j0-1", phase: "CANCELLING", cancelled: true });
    equal((await run("job", "cancel", "j0-1")).code, 1);
    match((await run("job", "show", "j0-1", "--json")).out[0] ?? "", /"phase":"CANCELLED"/);
  });

  test("a tenant's quota holds from then on, in every shard", async () => {
    const { run } = await scene();
    const set = await run("tenant", "set", "night", "--running", "1", "--queued", "2");
    deepEqual([set.code, set.out], [0, ["night: weight 1, at most 1 running, at most 2 queued"]]);
    const submit = () => run("job", "submit", "--tenant", "night", "--", "true");
    deepEqual([(await submit()).code, (await submit()).code], [0, 0]);
    const third = await submit();
    equal(third.code, 1);
    match(third.notes[0] ?? "", /queue-full/);
    equal((await run("tenant", "set", "night", "--running", "many")).code, 2);
    equal((await run("tenant", "set", "night", "--weight", "0")).code, 1);
  });

  test("the same key gives the same job", async () => {
    const { run } = await scene();
    await run("job", "submit", "--key", "k", "--", "true");
    match(
      (await run("job", "submit", "--key", "k", "--", "true")).out[0] ?? "",
      /^j0-1 was submitted before under this key/,
    );
    const other = await run("job", "submit", "--key", "k", "--", "false");
    equal(other.code, 1);
    match(other.notes[0] ?? "", /^submit: key-reused \(the key "k" already belongs to job j0-1/);
  });

  test("a refusal ends with 1 and the next thing to type, a wrong line with 2", async () => {
    const { run } = await scene();
    const unknown = await run("job", "show", "j0-7");
    deepEqual(
      [unknown.code, unknown.notes],
      [1, ["ask for job: job-unknown (there is no job j0-7)", "next: millrace job list"]],
    );
    equal((await run("job", "show", "seven")).code, 1);
    deepEqual(JSON.parse((await run("job", "show", "j0-7", "--json")).notes[0] ?? ""), {
      kind: "error",
      code: "job-unknown",
      message: "ask for job: job-unknown (there is no job j0-7)",
      next: "millrace job list",
    });
    equal((await run("job", "show")).code, 2);
    equal((await run("job", "submit")).code, 2);
    equal((await run("job", "submit", "--priority", "high", "--", "true")).code, 2);
    equal((await run("job", "list", "--phase", "gone")).code, 2);
    equal((await run("job", "signal", "j0-1")).code, 2);
    equal((await run("nonsense")).code, 2);
  });

  test("a node that is not there is said with what to do about it", async () => {
    const notes: string[] = [];
    const world: World = {
      env: {},
      isTerminal: false,
      out: () => {},
      note: (line) => notes.push(line),
      progress: () => {},
      http: () => Promise.reject(new Error("not asked over HTTP")),
      connect: () =>
        Promise.reject(new Fault("unavailable", "find node", { data: "/d", why: "no node is running there" })),
    };
    equal(await runLine(["nodes"], world), 1);
    deepEqual(notes, [
      "find node: unavailable (data=/d why=no node is running there)",
      "next: start one with: millrace up",
    ]);
  });

  test("a server is named by its address, and one that is not there is said as such", async () => {
    const { run } = await scene();
    const wrong = await run("cache", "stat", "--server", "localhost");
    deepEqual(wrong.notes, [
      "find node: invalid (server=localhost why=write its address, such as http://127.0.0.1:8980)",
    ]);
    const gone = await run("cache", "stat", "--server", "http://127.0.0.1:1");
    equal(gone.notes[1], "next: start it with: millrace up, or name another with --server");
  });

  test("help and version need no node", async () => {
    const { run } = await scene();
    match((await run("help")).out.join("\n"), /job submit/);
    match((await run("help", "job", "submit")).out.join("\n"), /--priority NUMBER/);
    match((await run("version")).out[0] ?? "", /^\d+\.\d+\.\d+/);
    equal((await run("help", "job", "sumbit")).code, 2);
    const group = await run("help", "cache");
    equal(group.code, 0);
    match(group.out.join("\n"), /cache stat +Say how full .*next: millrace help cache stat$/s);
  });
});
