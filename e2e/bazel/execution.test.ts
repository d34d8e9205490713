/** A real Bazel has a real node execute its actions: cold, from the cache, failing, too slow, and through kill -9. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { until } from "#test/until.ts";
import { bazelMissing } from "./bazel.ts";
import { RemoteBuild } from "./remote-build.ts";
import { Teller } from "./teller.ts";

describe("Bazel executes remotely", { skip: bazelMissing() ?? false, timeout: 280_000 }, () => {
  let remote: RemoteBuild;
  let actions = 0;
  before(async () => (remote = await RemoteBuild.open()));
  after(() => remote[Symbol.asyncDispose]());

  test("what nobody has built before, all of it over there", async () => {
    const { processes } = await remote.build("//...");
    actions = processes.get("remote") ?? 0;
    ok(actions >= 10, `${actions} actions`);
    deepEqual([...processes.keys()].toSorted(), ["internal", "remote"]);
    match(remote.made("flour/said.txt"), new RegExp(`^0 ${remote.salt}\n1 ${remote.salt}\n`));
    deepEqual(readdirSync(remote.at("flour/sacks")).toSorted(), ["deep", "empty", "grind"]);
    ok((statSync(remote.at("flour/sacks/grind")).mode & 0o100) !== 0);
  });

  test("and after a clean, from the cache alone", async () => {
    await remote.bazel.clean();
    const { processes } = await remote.build("//...");
    deepEqual([processes.get("remote cache hit"), processes.get("remote") ?? 0], [actions, 0]);
    match(remote.made("flour/said.txt"), new RegExp(remote.salt));
  });

  test("an action that fails shows its exit code and what it said", async () => {
    await rejects(remote.build("//trials:fails"), (error) => {
      match(String(error), new RegExp(`the stones are worn ${remote.salt}`));
      match(String(error), /Exit 7/);
      return true;
    });
    match(remote.serverLogs().join(), /^ended: +exit code 7$/m);
  });

  test("a test passes; one that takes too long is a TIMEOUT", async () => {
    match((await remote.test("//trials:pass_test")).output, /PASSED/);
    await rejects(remote.test("//trials:endless_test", "--test_timeout=3"), /TIMEOUT/);
  });

  test("a test that fails is FAILED, with its log; asked again, it is run again", async () => {
    for (let time = 0; time < 2; time += 1)
      await rejects(remote.test("//trials:fail_test"), (error) => {
        match(String(error), /FAILED/);
        match(String(error), /the wheel is stuck\nand says so here/);
        return true;
      });
  });

  test("a test that fails first and passes then is FLAKY, and the build is well", async () => {
    await using teller = await Teller.open(["fail", "pass"]);
    const told = `--test_env=FLAKY_PORT=${teller.port}`;
    const { output } = await remote.test("//trials:flaky_test", told, "--test_output=all");
    match(output, /FLAKY/);
    match(output, /told to fail[^]*told to pass/);
    equal(teller.told, 2);
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
