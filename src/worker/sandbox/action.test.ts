import { deepEqual, equal, match } from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { rigClock, rigHome, text } from "#worker/process/testing/rig.ts";
import { collectOutputs } from "#worker/outputs/collect.ts";
import { LinkCache } from "#worker/stage/link-cache.ts";
import { memoryBlobs, putTree } from "#worker/stage/testing/rig.ts";
import { stage } from "#worker/stage/stage.ts";
import { Trees } from "#worker/stage/tree.ts";
import { boxRoot } from "./box.ts";
import { Sandbox } from "./sandbox.ts";
import { clearAway } from "#testing/clear-away.ts";

function compilerMissing(): string | false {
  try {
    execFileSync("cc", ["--version"], { stdio: "ignore" });
    return process.platform !== "linux" && "needs linux: namespaces";
  } catch {
    return "needs cc: no C compiler here";
  }
}

const main = `#include "lib/answer.h"
#include <stdio.h>
int main(void) { printf("%d\\n", ANSWER); return 0; }
`;

for (const want of ["bubblewrap", "plain"] as const)
  test(
    `an action from input tree to outputs: a program is compiled (${want})`,
    { skip: compilerMissing() },
    async (t) => {
      const home = rigHome();
      await using undo = new AsyncDisposableStack();
      undo.defer(async () => clearAway(home));
      const options = { home, socket: join(home, "l"), lanes: 1, clock: rigClock, log: () => {}, isolation: { want } };
      let sandbox: Sandbox;
      try {
        sandbox = undo.use(await Sandbox.open(options));
      } catch (error) {
        return t.skip(`needs bubblewrap: ${String(error)}`);
      }
      const blobs = memoryBlobs();
      const links = await LinkCache.open({ folder: join(home, "links"), bytesMax: 1e8 });
      const inputRoot = await putTree(blobs, {
        "src/main.c": main,
        "src/lib/answer.h": "#define ANSWER 42\n",
        "out/tree/": "",
      });
      const script = "cc -o out/bin/main src/main.c && out/bin/main > out/tree/said && ln -s bin/main out/latest";
      const attempt = undo.use(await sandbox.attempt());
      const { root } = attempt.folder;
      const files = sandbox.about.users === "own" ? "link" : "copy";
      const outputPaths = ["out/bin/main", "out/tree", "out/latest", "out/missing"];
      const request = { inputRoot, digestFunction: "sha256", workingDirectory: "", outputs: outputPaths } as const;
      const symlinks = { absoluteLinks: "allowed" } as const;
      const target = { root, uid: attempt.lane.uid, files } as const;
      await stage({ ...request, symlinks }, target, { trees: new Trees(), links, blobs });
      const ran = await attempt.run({
        tag: "compile",
        argv: ["sh", "-c", script],
        env: { PATH: "/usr/bin:/bin" },
        workingDirectory: "",
        network: false,
        limits: { memoryBytes: 1e9, pids: 100 },
        timeoutMs: 60_000,
        leaseMs: 60_000,
        outputBytesMax: 100_000,
      });
      equal(text(attempt.folder.stderr), "");
      deepEqual([ran.exitCode, ran.sandbox, ran.message], [0, want, undefined]);
      const words = { workingDirectory: "", outputPaths, outputFiles: [], outputDirectories: [] };
      const seenAs = want === "bubblewrap" ? boxRoot : root;
      const made = await collectOutputs({ ...words, outputNodeProperties: [], outputDirectoryFormat: 0 }, blobs, {
        root,
        seenAs,
        digestFunction: "sha256",
        symlinks,
      });
      deepEqual(
        made.outputFiles.map(({ path, isExecutable }) => [path, isExecutable]),
        [["out/bin/main", true]],
      );
      deepEqual([made.outputDirectories.length, made.outputSymlinks[0]?.target], [1, "bin/main"]);
      match(text(join(root, "out/tree/said")), /^42$/m);
      deepEqual(await blobs.missing(made.digests), []);
    },
  );
