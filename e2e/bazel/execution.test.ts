/** A real Bazel executes its actions on a real node: cold, from the cache, failing, too slow, and through kill -9. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { until } from "#testing/until.ts";
import { bazelMissing } from "./bazel.ts";
import { testsEndEachItsWay, wheelsTurned } from "./cases.ts";
import { RemoteBuild } from "./remote-build.ts";

describe("Bazel executes remotely", { skip: bazelMissing() ?? false, timeout: 280_000 }, () => {
  let remote: RemoteBuild;
  let actions = 0;
  before(async () => (remote = await RemoteBuild.open()));
  after(() => remote[Symbol.asyncDispose]());

  test("new code, all of it remotely", async () => {
    const { processes } = await remote.build("//...");
    actions = processes.get("remote") ?? 0;
    ok(actions >= 10, `${actions} actions`);
    deepEqual([...processes.keys()].toSorted(), ["internal", "remote"]);
    wheelsTurned(remote);
  });

  test("and after a clean, from the cache alone", async () => {
    await remote.bazel.clean();
    const { processes } = await remote.build("//...");
    deepEqual([processes.get("remote cache hit"), processes.get("remote") ?? 0], [actions, 0]);
    wheelsTurned(remote);
  });

  test("a failing action shows its exit code and its output", async () => {
    await rejects(remote.build("//trials:fails"), (error) => {
      match(String(error), new RegExp(`the stones are worn ${remote.salt}`));
      match(String(error), /Exit 7/);
      return true;
    });
    match(remote.serverLogs().join(), /^ended: +exit code 7$/m);
  });

  test("tests pass, fail, are flaky and time out, each as Bazel reports it", () => testsEndEachItsWay(remote));

  test("a failed test is run again on request", async () => {
    for (let time = 0; time < 2; time += 1)
      await rejects(remote.test(["//trials:fail_test"]), (error) => {
        match(String(error), /^\/\/trials:fail_test +FAILED/m);
        match(String(error), /the wheel is stuck\nand says so here/);
        return true;
      });
  });

  test("the node is killed with -9 in the middle of an action, and the build finishes", async () => {
    const building = remote.build("//trials:slow");
    await until("the action runs", () => isRunning("sleep 10"), { limitMs: 60_000 });
    await remote.program.kill();
    await remote.program.start();
    const { processes } = await building;
    equal(processes.get("remote"), 1);
    match(remote.made("trials/slow.txt"), new RegExp(`ground slowly ${remote.salt}`));
  });
});

function isRunning(words: string): boolean {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .some((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim() === words;
      } catch {
        return false;
      }
    });
}
