/** Tools in their pool: a real process in a real sandbox. */
import { deepEqual, equal, notEqual, ok, rejects } from "node:assert/strict";
import { chownSync, copyFileSync, existsSync, readdirSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { realClock } from "#testing/real-clock.ts";
import { until } from "#testing/until.ts";
import { killQuietly } from "#worker/process/groups/group.ts";
import { isOver } from "#worker/process/launcher/proc.ts";
import { rigHome } from "#worker/process/testing/rig.ts";
import { Sandbox } from "#worker/sandbox/sandbox.ts";
import { createSpawnedRunner } from "#worker/spawned-runner.ts";
import { python, testingTool, withoutTool } from "./testing/python.ts";
import { ToolBroke, type ToolCommand } from "./tool-process.ts";
import { Tools, type LentTool } from "./tools.ts";

const never = new AbortController().signal;

const command: ToolCommand = {
  argv: [python, "tool.py", "--persistent_worker"],
  env: { PATH: "/usr/bin:/bin" },
  network: false,
  limits: {},
  outputBytesMax: 10_000,
  protocol: "proto",
};

describe("tools that stay", { skip: withoutTool, timeout: 60_000 }, () => {
  const home = rigHome();
  let sandbox: Sandbox;
  before(async () => {
    const lanes = { lanes: 3, ownLanes: 1 };
    sandbox = await Sandbox.open({ home, socket: join(home, "sock"), ...lanes, clock: realClock, log: () => {} });
  });
  after(async () => {
    await sandbox.close({ quit: true });
    clearAway(home);
  });

  const toolsOf = (toolsMax: number): Tools => {
    const ports = { sandbox, processes: createSpawnedRunner(sandbox.unboxed), clock: realClock, log: () => {} };
    return new Tools(ports, { toolsMax, idleMs: 60_000 });
  };

  async function borrow(tools: Tools, key = "k"): Promise<LentTool> {
    const lent = await tools.borrow(key, command, never);
    ok(lent, "a tool is available");
    await lent.process.still();
    const { folder, lane } = lent.process.attempt;
    copyFileSync(testingTool, join(folder.root, "tool.py"));
    if (lane.uid !== undefined) chownSync(join(folder.root, "tool.py"), lane.uid, lane.uid);
    return lent;
  }

  const ask = (lent: LentTool, ...words: readonly string[]) =>
    lent.process.ask({ arguments: words, inputs: [] }, 20_000, never);

  test("O4: from its answer until it may rest, none of its processes runs", async () => {
    await using tools = toolsOf(1);
    const lent = await borrow(tools);
    await ask(lent, "tick t");
    const file = join(lent.process.attempt.folder.root, "t");
    const before = statSync(file).size;
    await realClock.sleep(100);
    equal(statSync(file).size, before);
    await lent.process.rest();
    await until("it continues, in an empty folder", () => existsSync(file));
    await lent.process.still();
    deepEqual(readdirSync(lent.process.attempt.folder.root), []);
    tools.giveBack(lent);
  });

  test("usage is reported for each request", async () => {
    await using tools = toolsOf(1);
    const lent = await borrow(tools);
    const first = await ask(lent, "say one");
    ok(first.kind === "answered" && first.usage.cpuMs > 0, "starting it takes time");
    const second = await ask(lent, "say two");
    ok(second.kind === "answered" && second.usage.cpuMs < first.usage.cpuMs, "and is not counted twice");
    deepEqual([first.answer.output, second.answer.output], ["one\n", "two\n"]);
    tools.giveBack(lent);
  });

  test("one that dies while it waits is not lent again, and leaves nothing", async () => {
    await using tools = toolsOf(1);
    const lent = await borrow(tools);
    await ask(lent, "say hello");
    await lent.process.rest();
    tools.giveBack(lent);
    const { path } = lent.process.attempt.folder;
    for (const pid of pidsBelow(path)) killQuietly(pid);
    await until("it is gone", () => tools.counts.idle === 0 && !existsSync(path));
    const next = await borrow(tools);
    notEqual(next.id, lent.id);
    await tools.end(next);
  });

  test("O5: an unrequested answer is not taken for the next one", async () => {
    await using tools = toolsOf(1);
    const lent = await borrow(tools);
    await ask(lent, "say hello");
    await lent.process.rest();
    await lent.process.still();
    // As if the tool had printed it just before it was frozen.
    writeFileSync(join(lent.process.attempt.folder.path, "answered"), Buffer.from([2, 8, 0]));
    await rejects(ask(lent, "say more"), /without a request/);
    await tools.end(lent);
  });

  test("a tool that was ended refuses requests", async () => {
    await using tools = toolsOf(1);
    const lent = await borrow(tools);
    await lent.process.end();
    await rejects(ask(lent, "say hello"), ToolBroke);
    await tools.end(lent);
    deepEqual(tools.counts, { lent: 0, idle: 0, kept: 0, started: 1, broken: 0 });
  });

  test("when the pool is closed, all tools end and none is lent", async () => {
    const tools = toolsOf(2);
    const lents = [await borrow(tools, "a"), await borrow(tools, "b")];
    for (const lent of lents) await ask(lent, "say hello");
    const folders = lents.map((lent) => lent.process.attempt.folder.path);
    const pids = folders.flatMap(pidsBelow);
    ok(pids.length > 0);
    await tools[Symbol.asyncDispose]();
    deepEqual(
      pids.filter((pid) => !isOver(pid)),
      [],
    );
    equal(await tools.borrow("a", command, never), undefined);
    await sandbox.folders.settled();
    deepEqual(folders.filter(existsSync), []);
  });
});

/** All processes that can be signalled there, except this one. */
function pidsBelow(folder: string): readonly number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0 && pid !== process.pid && opened(pid).includes(join(folder, "asked")));
}

function opened(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
  } catch {
    return [];
  }
}
