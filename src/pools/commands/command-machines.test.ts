import { deepEqual, equal, match, ok } from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import type { NewMachine } from "#pools/machine.ts";
import { PoolsConfig, type CommandsSettings } from "#pools/pool-config.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { openCommands } from "./command-machines.ts";

const skip = process.platform === "win32" && "needs a shell";
const folder = mkdtempSync(join(tmpdir(), "millrace-machines-"));
after(() => clearAway(folder));

const sh = (script: string): readonly string[] => ["/bin/sh", "-c", script];
const makes = `env | grep ^MILLRACE_ > "${folder}/$MILLRACE_MACHINE"`;
const destroys = `rm -f "${folder}/$MILLRACE_MACHINE"`;

function rig(create = makes, destroy = destroys) {
  const clock = new ManualClock();
  const records = watchedRecords(
    memoryRecords(() => clock.wallMs()),
    clock,
  );
  const [settings] = PoolsConfig.parse([
    {
      kind: "commands",
      name: "metal",
      max: 2,
      create: sh(create),
      destroy: sh(destroy),
      templates: [{ runsOn: ["metal"] }],
    },
  ]);
  const logged: string[] = [];
  const open = (node: string) =>
    openCommands({
      settings: settings as CommandsSettings,
      server: "http://node:8980",
      records,
      node,
      clock,
      changed: () => {},
      log: (line) => logged.push(line),
    });
  return { clock, open, logged };
}

const wanted = (slot: number, nonce = "abc"): NewMachine => ({
  slot,
  template: "default",
  worker: `pool.metal.${slot}.${nonce}`,
  registration: "r-1",
  token: "mrw1.the-secret-token",
  task: undefined,
});

describe("machines that commands make", { skip }, () => {
  test("are made with what they need to register, and destroyed by name", async () => {
    const { open } = rig();
    await using maker = await open("n1");
    ok(await maker.create(wanted(0)));
    equal(await maker.create(wanted(0, "def")), false, "the slot is taken");
    const path = join(folder, "millrace-metal-0-abc");
    await until("it is up", () => maker.seen()?.[0]?.phase === "up");
    const env = readFileSync(path, "utf8");
    for (const line of ["MILLRACE_SERVER=http://node:8980", "MILLRACE_POOL=metal", "MILLRACE_WORKER_TOKEN=mrw1"])
      ok(env.includes(line), env);
    const [machine] = maker.seen() ?? [];
    ok(machine);
    await maker.remove(machine);
    equal(maker.seen()?.[0]?.phase, "leaving");
    await until("it is gone", () => maker.seen()?.length === 0 && !existsSync(path));
  });

  test("a command that fails is named, without the token", async () => {
    const { open } = rig(`echo "no quota for $MILLRACE_WORKER_TOKEN" >&2; exit 3`);
    await using maker = await open("n1");
    await maker.create(wanted(0));
    await until("it has failed", () => maker.seen()?.[0]?.phase === "ended");
    const { problem } = maker.seen()?.[0] ?? {};
    deepEqual([problem?.reason, problem?.message], ["failed", "exit code 3: no quota for ***"]);
  });

  test("CM1 what a dead node left unfinished is destroyed, once its command cannot run any more", async () => {
    const { open, clock } = rig(`${makes}; sleep 1`);
    const dead = await open("n1");
    await dead.create(wanted(1, "dead"));
    await until("the machine is there", () => readdirSync(folder).includes("millrace-metal-1-dead"));
    await using next = await open("n2");
    equal(next.seen()?.[0]?.phase, "starting", "its command may still run");
    await clock.advance(300_001);
    const [machine] = next.seen() ?? [];
    equal(machine?.phase, "ended");
    ok(machine);
    await next.remove(machine);
    await until("it is destroyed", () => next.seen()?.length === 0);
    ok(!existsSync(join(folder, "millrace-metal-1-dead")));
  });

  test("a machine that cannot be destroyed stays listed, and is tried again", async () => {
    const { open, logged } = rig(makes, "exit 1");
    await using maker = await open("n1");
    await maker.create(wanted(0, "stuck"));
    await until("it is up", () => maker.seen()?.[0]?.phase === "up");
    const [machine] = maker.seen() ?? [];
    ok(machine);
    await maker.remove(machine);
    await until("it was tried", () => logged.length > 0);
    match(logged[0] ?? "", /destroy millrace-metal-0-stuck: exit code 1/);
    await until("it is up again", () => maker.seen()?.[0]?.phase === "up");
  });
});
