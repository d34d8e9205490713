// Commands against a real node in this process that runs nothing: what they print, in words and in JSON.
import { deepEqual, equal, match } from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";

import { clearAway } from "#testing/clear-away.ts";
import { runLine, type Terminal } from "./line.ts";

async function scene() {
  const folder = await mkdtemp(join(tmpdir(), "millrace-line-"));
  const config = Config.parse({
    cluster: { shards: 1 },
    journal: { kind: "memory" },
    blobs: { kind: "memory" },
    worker: { enabled: false },
    edge: { listen: ["127.0.0.1:0"] },
  });
  const node = await startNode(config, dataFolder(folder), { log: () => {} });
  const run = async (...args: string[]) => {
    const out: string[] = [];
    const notes: string[] = [];
    const world: Terminal = {
      env: { MILLRACE_DATA: folder },
      isTerminal: false,
      isOutTerminal: args.includes("--terminal"),
      out: (line) => out.push(line),
      note: (line) => notes.push(line),
      progress: () => {},
    };
    return {
      code: await runLine(
        args.filter((arg) => arg !== "--terminal"),
        world,
      ),
      out,
      notes,
    };
  };
  const close = async (): Promise<void> => {
    await node.stop();
    clearAway(folder);
  };
  return { run, folder, [Symbol.asyncDispose]: close };
}

describe("the commands", { timeout: 60_000 }, () => {
  test("submit, show, list, ask why and cancel a job, in words and in JSON", async () => {
    await using node = await scene();
    const { run } = node;
    const submitted = await run("job", "submit", "--terminal", "--name", "mine", "--", "echo", "hi");
    deepEqual([submitted.code, submitted.out], [0, ["j0-1 submitted; what it prints: millrace job logs -f j0-1"]]);
    const shown = await run("job", "show", "j0-1");
    match(shown.out[0] ?? "", /^j0-1 {2}RUNNING {2}mine/);
    const listed = await run("job", "list", "--json");
    equal((JSON.parse(listed.out[0] ?? "") as { jobId: string }).jobId, "j0-1");
    match((await run("job", "list")).out[0] ?? "", /^JOB +PHASE +DONE +TIME +NAME$/);
    for (const why of [await run("job", "why", "j0-1"), await run("why", "j0-1")])
      match(why.out[0] ?? "", /1 .*ready: there is no worker$/i);
    const cancelled = await run("job", "cancel", "j0-1", "--json");
    deepEqual(JSON.parse(cancelled.out[0] ?? ""), { jobId: "j0-1", phase: "CANCELLING", cancelled: true });
    equal((await run("job", "cancel", "j0-1")).code, 1);
    match((await run("job", "show", "j0-1", "--json")).out[0] ?? "", /"phase":"CANCELLED"/);
    match((await run("job", "show", "j0-1")).out[0] ?? "", /^j0-1 {2}CANCELLED: cancelled by owner/);
  });

  test("a program gets the id alone, and a job is called by its command line as typed", async () => {
    await using node = await scene();
    const { run } = node;
    const { out, notes } = await run("job", "submit", "--", "sh", "-c", "sleep 8; echo done");
    deepEqual([out, notes], [["j0-1"], []]);
    const [, row] = (await run("job", "list")).out;
    match(row ?? "", / sh -c 'sleep 8; echo done'$/);
  });

  test("nodes and shards are listed", async () => {
    await using node = await scene();
    const { run } = node;
    match((await run("nodes")).out[1] ?? "", / up +\S+ .*version=/);
    match((await run("shards")).out[1] ?? "", /^0 .* serving +0 +0$/);
    match((await run("shards", "--json")).out[0] ?? "", /"here":\{"shard":0,"phase":"serving"/);
  });

  test("a tenant's quota holds from then on, in every shard", async () => {
    await using node = await scene();
    const { run } = node;
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
    await using node = await scene();
    const { run } = node;
    await run("job", "submit", "--key", "k", "--", "true");
    const again = await run("job", "submit", "--key", "k", "--", "true");
    deepEqual([again.out, again.notes], [["j0-1"], ["j0-1 was submitted before under this key"]]);
    const other = await run("job", "submit", "--key", "k", "--", "false");
    equal(other.code, 1);
    match(
      other.notes[0] ?? "",
      /^submit job: invalid \(status=422 why=.*key-reused \(the key "k" already belongs to job j0-1/,
    );
  });

  test("a refusal ends with 1 and the next thing to type, a wrong line with 2", async () => {
    await using node = await scene();
    const { run } = node;
    const unknown = await run("job", "show", "j0-7");
    equal(unknown.code, 1);
    match(unknown.notes[0] ?? "", /^show job: not-found \(status=404 why=find job: not-found \(job=j0-7\)/);
    equal(unknown.notes[1], "next: millrace job list");
    equal((await run("job", "show", "seven")).code, 1);
    const { code, next } = JSON.parse((await run("job", "show", "j0-7", "--json")).notes[0] ?? "") as Error & {
      readonly code: string;
      readonly next: string;
    };
    deepEqual([code, next], ["not-found", "millrace job list"]);
    equal((await run("job", "show")).code, 2);
    equal((await run("job", "submit")).code, 2);
    equal((await run("job", "submit", "--priority", "high", "--", "true")).code, 2);
    equal((await run("job", "list", "--phase", "gone")).code, 2);
    equal((await run("job", "signal", "j0-1")).code, 2);
    equal((await run("nonsense")).code, 2);
  });

  test("a node that is not there is said with what to do about it", async () => {
    const notes: string[] = [];
    const world: Terminal = {
      env: {},
      isTerminal: false,
      out: () => {},
      note: (line) => notes.push(line),
      progress: () => {},
    };
    equal(await runLine(["nodes", "--data", "/no/such/folder"], world), 1);
    deepEqual(notes, [
      "find node: unavailable (data=/no/such/folder why=no node is running there)",
      "next: start one with: millrace up",
    ]);
  });

  test("a server is named by its address, and one that is not there is said as such", async () => {
    await using node = await scene();
    const { run } = node;
    const wrong = await run("cache", "stat", "--server", "localhost");
    deepEqual(wrong.notes, [
      "find node: invalid (server=localhost why=write its address, such as http://127.0.0.1:8980)",
    ]);
    const gone = await run("cache", "stat", "--server", "http://127.0.0.1:1");
    equal(gone.notes[1], "next: start it with: millrace up, or name another with --server");
  });

  test("help and version need no node", async () => {
    await using node = await scene();
    const { run } = node;
    match((await run("help")).out.join("\n"), /job submit/);
    match((await run("help", "job", "submit")).out.join("\n"), /--priority NUMBER/);
    match((await run("version")).out[0] ?? "", /^\d+\.\d+\.\d+/);
    equal((await run("help", "job", "sumbit")).code, 2);
    const group = await run("help", "cache");
    equal(group.code, 0);
    match(group.out.join("\n"), /cache stat +Say how full .*next: millrace help cache stat$/s);
  });
});
