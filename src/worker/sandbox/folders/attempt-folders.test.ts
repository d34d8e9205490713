/** What an attempt left in its folder, and whether the next one gets that folder. */
import { deepEqual, equal, notEqual, ok } from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { rigHome } from "#worker/process/testing/rig.ts";
import type { LaidInputs } from "#worker/stage/left-inputs.ts";
import { attemptsIn, type AttemptFolder } from "./attempt-folder.ts";
import { AttemptFolders, type AttemptFoldersOptions } from "./attempt-folders.ts";
import { whyNotUsedAgain } from "#worker/sandbox/testing/rig.ts";
import { clearAway } from "#testing/clear-away.ts";

const uid = 70_001;

class Rig implements AsyncDisposable {
  readonly home = rigHome();
  readonly folders: AttemptFolders;

  constructor(more: Partial<AttemptFoldersOptions> = {}) {
    this.folders = new AttemptFolders({ home: this.home, boxed: true, log: (line) => this.lines.push(line), ...more });
  }

  readonly lines: string[] = [];

  /** Runs one attempt with this effect to its end, and returns the next one's folder. */
  async next(does: (folder: AttemptFolder) => void): Promise<AttemptFolder> {
    const folder = this.folders.take(uid);
    writeFileSync(join(folder.root, "input"), "");
    this.folders.seal(folder);
    does(folder);
    this.folders.leaveInputs(folder, inputs(false));
    this.folders.giveBack(folder);
    await this.folders.settled();
    return folder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.folders.close();
    clearAway(this.home);
  }
}

/** None of them stay; `isNothingElse` says whether something else does. */
const inputs = (isNothingElse: boolean, take?: () => void): LaidInputs => ({
  areAsFound: false,
  leave() {
    take?.();
    return { left: undefined, areMoved: take !== undefined, isNothingElse };
  },
});

const stranger = (command: string, ...args: readonly string[]): void =>
  void execFileSync("setpriv", [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", command, ...args]);

const isNew = ({ path, root, stdout, stderr }: AttemptFolder): void => {
  deepEqual(readdirSync(path).toSorted(), ["root", "status", "stderr", "stdout"]);
  deepEqual(readdirSync(root), []);
  const rights = [path, root, stdout, stderr].map((each) => {
    const { mode, uid: user, gid, nlink } = statSync(each);
    return [(mode & 0o7777).toString(8), user, gid, statSync(each).isFile() ? nlink : 1];
  });
  const [own, file] = [
    ["700", uid, uid, 1],
    ["600", uid, uid, 1],
  ];
  deepEqual(rights, [["710", 0, uid, 1], own, file, file]);
  equal(readFileSync(stdout, "utf8") + readFileSync(stderr, "utf8"), "");
};

const cases: readonly (readonly [what: string, does: (folder: AttemptFolder) => void])[] = [
  ["leaves everything as it was", () => {}],
  ["prints", ({ stdout }) => appendFileSync(stdout, "hello")],
  ["prints to both", ({ stdout, stderr }) => [stdout, stderr].forEach((path) => appendFileSync(path, "hello"))],
  ["makes files and folders", ({ root }) => stranger("mkdir", "-p", join(root, "a/b"), join(root, "c"))],
  ["removes its inputs", ({ root }) => rmSync(join(root, "input"))],
  ["closes its root", ({ root }) => stranger("chmod", "0000", root)],
  ["opens its root", ({ root }) => stranger("chmod", "0777", root)],
  ["changes and changes back", ({ root }) => [0o755, 0o700].forEach((mode) => chmodSync(root, mode))],
  ["opens what it prints to", ({ stdout }) => stranger("chmod", "0666", stdout)],
  ["has another link to its output file", ({ stdout, root }) => stranger("ln", stdout, join(root, "link"))],
  ["has a status line of its sandbox", ({ status }) => writeFileSync(status, '{ "exit-code": 0 }\n')],
  ["has a long status of its sandbox", ({ status }) => writeFileSync(status, "x".repeat(100_000))],
];

describe("the folder of an attempt", { skip: whyNotUsedAgain() }, () => {
  for (const [what, does] of cases)
    test(`is as good as new when the command ${what}`, async () => {
      await using rig = new Rig();
      const first = await rig.next(does);
      const second = rig.folders.take(uid);
      equal(second.path, first.path);
      isNew(second);
      equal(readFileSync(second.status, "utf8").trim(), "");
    });

  const meanwhile: readonly (readonly [what: string, does: (folder: AttemptFolder) => void])[] = [
    ["put something into the root", ({ root }) => stranger("touch", join(root, "trap"))],
    ["put something in and took it out", ({ root }) => [mkdirSync, rmdirSync].forEach((f) => f(join(root, "x")))],
    ["opened the root", ({ root }) => stranger("chmod", "0777", root)],
    ["printed", ({ stderr }) => stranger("sh", "-c", 'echo trap >> "$0"', stderr)],
    ["opened what is printed to", ({ stdout }) => stranger("chmod", "0666", stdout)],
  ];
  for (const [what, does] of meanwhile)
    test(`Z1: is not reused when someone ${what} meanwhile`, async () => {
      await using rig = new Rig();
      const first = await rig.next(() => {});
      does(first);
      const second = rig.folders.take(uid);
      notEqual(second.path, first.path);
      isNew(second);
      await rig.folders.settled();
      deepEqual(readdirSync(attemptsIn(rig.home)), [second.path.slice(attemptsIn(rig.home).length + 1)]);
    });

  test("Z1: if its sandbox's status file is reachable, that counts as well", async () => {
    await using rig = new Rig({ boxed: false });
    const first = await rig.next(({ status }) => stranger("sh", "-c", 'echo left > "$0"', status));
    const second = rig.folders.take(uid);
    equal(second.path, first.path);
    equal(readFileSync(second.status, "utf8"), "");
  });

  test("is never given to another user, nor reused without separate users", async () => {
    await using rig = new Rig();
    const first = await rig.next(() => {});
    notEqual(rig.folders.take(uid + 1).path, first.path);
    const shared = rig.folders.take(undefined);
    rig.folders.giveBack(shared);
    await rig.folders.settled();
    ok(!readdirSync(attemptsIn(rig.home)).some((name) => shared.path.endsWith(name)));
  });

  test("Z1: is deleted, with all others of its user, if one of its processes may be alive", async () => {
    await using rig = new Rig();
    const first = await rig.next(() => {});
    const second = rig.folders.take(uid);
    equal(second.path, first.path);
    rig.folders.distrust(uid);
    rig.folders.giveBack(second);
    await rig.folders.settled();
    deepEqual(readdirSync(attemptsIn(rig.home)), []);
    await rig.next(() => {});
    deepEqual(readdirSync(attemptsIn(rig.home)), [], "for good");
  });

  test("is kept as often as useful, and not longer than its owner exists", async () => {
    await using rig = new Rig({ sparesMax: 2 });
    const many = Array.from({ length: 5 }, () => rig.folders.take(uid));
    for (const folder of many) {
      rig.folders.seal(folder);
      rig.folders.giveBack(folder);
    }
    await rig.folders.settled();
    equal(readdirSync(attemptsIn(rig.home)).length, 2);
    await rig.folders.close();
    deepEqual(readdirSync(attemptsIn(rig.home)), []);
    deepEqual(rig.lines, []);
  });

  test("has inputs moved out of it, and is the same after that", async () => {
    await using rig = new Rig();
    const folder = rig.folders.take(uid);
    mkdirSync(join(folder.root, "kept"));
    rig.folders.seal(folder);
    const { ino } = statSync(folder.root);
    const take = (): void => rmdirSync(join(folder.root, "kept"));
    rig.folders.leaveInputs(folder, inputs(true, take));
    rig.folders.giveBack(folder);
    await rig.folders.settled();
    equal(statSync(rig.folders.take(uid).root).ino, ino);
  });

  const changes: readonly (readonly [when: string, before: boolean, after: boolean])[] = [
    ["before its inputs are taken", true, false],
    ["between that and its end", false, true],
  ];
  for (const [when, before, after] of changes)
    test(`Z1: gets another root if that was changed ${when}`, async () => {
      await using rig = new Rig();
      const folder = rig.folders.take(uid);
      rig.folders.seal(folder);
      if (before) stranger("chmod", "0777", folder.root);
      rig.folders.leaveInputs(folder, inputs(false));
      if (after) stranger("chmod", "0777", folder.root);
      rig.folders.giveBack(folder);
      await rig.folders.settled();
      const next = rig.folders.take(uid);
      equal(next.path, folder.path);
      isNew(next);
    });

  const left: readonly (readonly [what: string, does: (folder: AttemptFolder) => void, isSame: boolean])[] = [
    ["nothing at all", () => {}, true],
    ["another mode of the root", ({ root }) => stranger("chmod", "0777", root), false],
    ["a file in the root", ({ root }) => stranger("touch", join(root, "trap")), false],
    ["text in its output file", ({ stdout }) => stranger("sh", "-c", `echo word > ${stdout}`), false],
  ];
  for (const [what, does, isSame] of left)
    test(`Z1: with nothing left in it is checked only when it is taken, and ${what} shows then`, async () => {
      await using rig = new Rig();
      const folder = rig.folders.take(uid);
      rig.folders.seal(folder);
      rig.folders.leaveInputs(folder, inputs(true));
      rig.folders.giveBack(folder, false);
      await rig.folders.settled();
      does(folder);
      const next = rig.folders.take(uid);
      equal(next.path === folder.path, isSame);
      isNew(next);
    });

  test("Z1: with something left in it that is no input is emptied", async () => {
    await using rig = new Rig();
    const folder = rig.folders.take(uid);
    rig.folders.seal(folder);
    stranger("touch", join(folder.root, "made"));
    rig.folders.leaveInputs(folder, inputs(true));
    rig.folders.giveBack(folder, false);
    await rig.folders.settled();
    isNew(rig.folders.take(uid));
  });
});
