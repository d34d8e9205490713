import { deepEqual, equal, notEqual, ok } from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { rigClock, rigHome, text } from "#worker/process/testing/rig.ts";
import { uidBasesOf } from "./isolation.ts";
import { commandOf } from "./testing/rig.ts";
import { Sandbox } from "./sandbox.ts";

test("a node's users are its own, and the same after a restart", () => {
  const bases = Array.from({ length: 100 }, (_, no) => uidBasesOf(`/var/lib/node-${no}`)[0] ?? 0);
  ok(new Set(bases).size >= 98, "of 10,000 ranges, hardly two nodes have the same");
  for (const base of bases) {
    ok(base >= 1_835_600_000 && base + 20_000 < 2 ** 31);
    equal((base - 1_835_600_000) % 20_000, 0, "two ranges are equal or disjoint");
  }
  deepEqual(uidBasesOf("/var/lib/node-0/"), uidBasesOf("/var/lib/node-0"));
});

const skip = process.getuid?.() === 0 ? false : "needs root: other users";

test("processes of one node cannot signal those of another on the same machine", { skip }, async () => {
  const open = async (home: string) => {
    const options = { home, socket: join(home, "l.sock"), lanes: 1, clock: rigClock, log: () => {} };
    return await Sandbox.open({ ...options, isolation: { want: "plain" } });
  };
  const first = rigHome();
  let second = rigHome();
  while (uidBasesOf(first)[0] === uidBasesOf(second)[0]) second = rigHome();
  const homes = [first, second] as const;
  const [one, other] = [await open(homes[0]), await open(homes[1])];
  try {
    await using victim = await one.attempt();
    const running = victim.start(commandOf(["/bin/sh", "-c", "echo $$; exec sleep 30"]));
    await until("it says who it is", () => text(victim.folder.stdout).includes("\n"));
    const pid = text(victim.folder.stdout).trim();
    await using attacker = await other.attempt();
    const { exitCode } = await attacker.run(commandOf(["/bin/sh", "-c", `kill -9 ${pid}`]));
    notEqual(exitCode, 0);
    running.kill("cancelled");
    equal((await running.end).why, "cancelled");
  } finally {
    await Promise.all([one.close({ quit: true }), other.close({ quit: true })]);
    for (const home of homes) clearAway(home);
  }
});
