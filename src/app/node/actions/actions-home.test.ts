import { deepEqual, equal, throws } from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { actionsHome, leaveHome } from "./actions-home.ts";

const isRoot = process.getuid?.() === 0;

function withFolder(body: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "millrace-home-"));
  try {
    chmodSync(folder, 0o711);
    body(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const made = (path: string, mode: number): string => {
  mkdirSync(path);
  chmodSync(path, mode);
  return path;
};

test("actions run in the data folder if others can traverse it, or need not", () => {
  withFolder((folder) => {
    const data = made(join(folder, "data"), isRoot ? 0o711 : 0o700);
    equal(actionsHome(undefined, data, made(join(folder, "elsewhere"), 0o711)), join(data, "actions"));
  });
});

test("as root, elsewhere if they cannot, the same folder every time; unused ones are swept", (t) => {
  if (!isRoot) return t.skip("needs root: other users");
  withFolder((folder) => {
    const elsewhere = made(join(folder, "elsewhere"), 0o711);
    const gone = made(join(folder, "gone"), 0o700);
    actionsHome(undefined, gone, elsewhere);
    rmSync(gone, { recursive: true });
    made(join(elsewhere, "millrace-of-another-kind"), 0o711);
    const data = made(join(folder, "data"), 0o700);
    const home = actionsHome(undefined, data, elsewhere);
    equal(actionsHome(undefined, data, elsewhere), home);
    deepEqual(readdirSync(elsewhere).length, 2, "the one whose data is gone is gone");
    leaveHome(home, undefined, data);
    deepEqual(readdirSync(elsewhere), ["millrace-of-another-kind"]);
    leaveHome(home, undefined, data); // another node swept it before
  });
});

const isRefused = (home: string, data: string): void =>
  throws(
    () => actionsHome(home, data),
    (error) => isFault(error, "invalid"),
  );

test("a world-writable folder is not used", () => {
  withFolder((folder) => {
    isRefused(made(join(folder, "open"), 0o777), folder);
    isRefused(made(join(folder, "wet"), 0o1733), folder);
  });
});

test("our own folder that was opened to a group is closed again, and opened to no other", () => {
  withFolder((folder) => {
    const data = made(join(folder, "data"), 0o711);
    const home = actionsHome(undefined, data);
    chmodSync(home, 0o2771); // like the fsGroup setting of a volume
    equal(actionsHome(undefined, data), home);
    equal(statSync(home).mode & 0o7777, 0o711);
    const closed = made(join(folder, "closed"), 0o770);
    actionsHome(closed, data);
    equal(statSync(closed).mode & 0o7777, 0o710);
  });
});

test("a folder of another user, or elsewhere, stays unchanged and is not used", (t) => {
  withFolder((folder) => {
    const target = made(join(folder, "target"), 0o2771);
    symlinkSync(target, join(folder, "link"));
    isRefused(join(folder, "link"), folder);
    equal(statSync(target).mode & 0o7777, 0o2771);
    if (!isRoot) return t.skip("the rest needs root: other users");
    chownSync(target, 1, 1);
    chmodSync(target, 0o2771);
    isRefused(target, folder);
    equal(statSync(target).mode & 0o7777, 0o2771);
  });
});
