import { deepEqual, equal, throws } from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
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

test("actions run in the data folder where others can pass through it, or need not", () => {
  withFolder((folder) => {
    const data = made(join(folder, "data"), isRoot ? 0o711 : 0o700);
    equal(actionsHome(undefined, data, made(join(folder, "elsewhere"), 0o711)), join(data, "actions"));
  });
});

test("as root, elsewhere where they cannot, the same place every time; and what nobody needs is swept up", (t) => {
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
  });
});

test("a folder that others may write to is not used", () => {
  withFolder((folder) => {
    const open = made(join(folder, "open"), 0o777);
    throws(
      () => actionsHome(open, folder),
      (error) => isFault(error, "invalid"),
    );
  });
});
