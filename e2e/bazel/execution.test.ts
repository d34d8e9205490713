/** A real Bazel has a real node execute its actions: cold, from the cache, failing, too slow, and through kill -9. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { until } from "#test/until.ts";
import { Bazel, bazelMissing, type Built } from "./bazel.ts";
import { Program } from "./program.ts";
import { addTrials } from "./trials.ts";
import { makeWorkspace, type Workspace } from "./workspace.ts";

const missing = bazelMissing();

describe("Bazel executes remotely", { skip: missing ?? false, timeout: 400_000 }, () => {
  const salt = randomUUID();
  let folder: string;
  let workspace: Workspace;
  let bazel: Bazel;
  let program: Program;
  let actions = 0;

  const flags = (): string[] => [
    `--remote_executor=grpc://${program.address}`,
    "--spawn_strategy=remote",
    "--remote_retries=20",
  ];
  const build = (targets: readonly string[], ...more: readonly string[]): Promise<Built> =>
    bazel.build(targets, [...flags(), ...more]);
  const made = (path: string): string => readFileSync(join(workspace.root, "bazel-bin", path), "utf8");

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "millrace-bazel-exec-"));
    chmodSync(folder, 0o711);
    const actionsIn = join(folder, "actions");
    mkdirSync(actionsIn, { mode: 0o711 });
    workspace = addTrials(makeWorkspace(folder, salt), folder, salt);
    bazel = new Bazel(workspace, join(folder, "bazel"));
    program = await Program.open(join(folder, "node"), actionsIn);
  });
  after(async () => {
    await bazel.stop();
    await program.stop();
    execFileSync("chmod", ["-R", "u+w", folder]); // Bazel makes its outputs read-only
    await rm(folder, { recursive: true, force: true });
  });

  test("what nobody has built before, all of it over there", async () => {
    const { processes } = await build(["//..."]);
    actions = processes.get("remote") ?? 0;
    ok(actions >= 10, `${actions} actions`);
    deepEqual([...processes.keys()].toSorted(), ["internal", "remote"]);
    match(made("flour/said.txt"), new RegExp(`^0 ${salt}\n1 ${salt}\n`));
    deepEqual(readdirSync(join(workspace.root, "bazel-bin/flour/sacks")).toSorted(), ["deep", "empty", "grind"]);
    ok((statSync(join(workspace.root, "bazel-bin/flour/sacks/grind")).mode & 0o100) !== 0);
  });

  test("and after a clean, from the cache alone", async () => {
    await bazel.clean();
    const { processes } = await build(["//..."]);
    deepEqual([processes.get("remote cache hit"), processes.get("remote") ?? 0], [actions, 0]);
    match(made("flour/said.txt"), new RegExp(salt));
  });

  test("an action that fails shows its exit code and what it said", async () => {
    await rejects(build(["//trials:fails"]), (error) => {
      match(String(error), new RegExp(`the stones are worn ${salt}`));
      match(String(error), /Exit 7/);
      return true;
    });
  });

  test("a test passes; one that takes too long is a TIMEOUT", async () => {
    const passed = await bazel.test(["//trials:pass_test"], flags());
    match(passed.output, /PASSED/);
    await rejects(bazel.test(["//trials:endless_test"], [...flags(), "--test_timeout=3"]), /TIMEOUT/);
  });

  test("the node is killed with -9 in the middle of an action, and the build finishes", async () => {
    const building = build(["//trials:slow"]);
    await until("the action runs", () => isRunning("sleep 10"), { limitMs: 60_000 });
    await program.kill();
    await program.start();
    const { processes } = await building;
    equal(processes.get("remote"), 1);
    match(made("trials/slow.txt"), new RegExp(`ground slowly ${salt}`));
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
