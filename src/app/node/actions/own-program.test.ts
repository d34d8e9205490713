import { deepEqual, equal, match, notEqual, ok } from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { bwrapMissing } from "#testing/bubblewrap.ts";
import { clearAway } from "#testing/clear-away.ts";
import { rigClock, rigHome, text } from "#worker/process/testing/rig.ts";
import { Sandbox } from "#worker/sandbox/sandbox.ts";
import { commandOf } from "#worker/sandbox/testing/rig.ts";
import { actionsHome } from "./actions-home.ts";
import { ownProgram } from "./own-program.ts";

const isRoot = process.getuid?.() === 0;

/** A program in a folder that no other user can enter. */
function closedProgram(below = tmpdir()): { readonly folder: string; readonly program: string } {
  const folder = mkdtempSync(join(below, "millrace-closed-")); // mode 0700
  const program = join(folder, "src");
  mkdirSync(join(program, "inner"), { recursive: true, mode: 0o700 });
  writeFileSync(join(program, "inner", "run.sh"), "#!/bin/sh\necho it runs\n");
  chmodSync(join(program, "inner", "run.sh"), 0o700);
  symlinkSync("inner/run.sh", join(program, "run"));
  return { folder, program };
}

const openHome = (): string => {
  const home = mkdtempSync(join(tmpdir(), "millrace-elsewhere-"));
  chmodSync(home, 0o711);
  return home;
};

describe("our own program", () => {
  test("is what Node needs to run it, and not what lies beside it", () => {
    const at = ownProgram().map((shown) => shown.at);
    const root = dirname(dirname(dirname(dirname(import.meta.dirname))));
    for (const part of ["bin", "src", "package.json"]) ok(at.includes(join(root, part)), part);
    ok(at.some((path) => process.execPath.startsWith(`${path}/`)));
    ok(!at.includes(root) && !at.some((path) => path.startsWith(join(root, ".git"))));
  });

  test("lies where it is if every user can read it", { skip: !isRoot && "needs root: other users" }, () => {
    deepEqual(ownProgram(["/usr/bin"]), [{ at: "/usr/bin", from: "/usr/bin" }]);
  });

  test(
    "is copied where others may not enter, once for each of its states",
    { skip: !isRoot && "needs root: other users" },
    () => {
      const [{ folder, program }, elsewhere] = [closedProgram(), openHome()];
      try {
        const [first] = ownProgram([program], elsewhere);
        ok(first && first.at === program && first.from.startsWith(elsewhere));
        equal(readFileSync(join(first.from, "run"), "utf8"), "#!/bin/sh\necho it runs\n");
        equal(statSync(join(first.from, "inner", "run.sh")).mode & 0o777, 0o755, "readable, and still a program");
        equal(ownProgram([program], elsewhere)[0]?.from, first.from, "the same copy");
        writeFileSync(join(program, "inner", "run.sh"), "#!/bin/sh\necho it runs better\n");
        const [second] = ownProgram([program], elsewhere);
        notEqual(second?.from, first.from);
        match(readFileSync(join(second?.from ?? "", "run"), "utf8"), /better/);

        clearAway(folder);
        const data = mkdtempSync(join(tmpdir(), "millrace-data-"));
        try {
          actionsHome(undefined, data, elsewhere);
          ok(!existsSync(first.from), "swept when the program is gone");
        } finally {
          clearAway(data);
        }
      } finally {
        clearAway(folder);
        clearAway(elsewhere);
      }
    },
  );

  for (const below of [tmpdir(), "/opt"])
    test(
      `runs in a sandbox from a closed folder below ${below}`,
      { skip: bwrapMissing() || (!isRoot && "needs root: other users"), timeout: 60_000 },
      async () => {
        const [{ folder, program }, elsewhere, home] = [closedProgram(below), openHome(), rigHome()];
        const shown = ownProgram([program], elsewhere);
        const isolation = { want: "bubblewrap" } as const;
        const options = {
          home,
          socket: join(home, "l.sock"),
          lanes: 1,
          clock: rigClock,
          log: () => {},
          shown,
          isolation,
        };
        try {
          await using sandbox = await Sandbox.open(options);
          for (const network of [false, true]) {
            await using attempt = await sandbox.attempt();
            const script = `${program}/run; ls -a ${folder} | tr '\\n' ' '; touch ${program}/new ${folder}/new || echo closed`;
            await attempt.run(commandOf(["/bin/sh", "-c", script], { network }));
            equal(text(attempt.folder.stdout), "it runs\n. .. src closed\n");
          }
        } finally {
          for (const path of [folder, elsewhere, home]) clearAway(path);
        }
      },
    );
});
