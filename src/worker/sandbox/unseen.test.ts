import { deepEqual, equal } from "node:assert/strict";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { boxRoot, boxArguments, emptyBox } from "./box.ts";
import { Unseen } from "./unseen.ts";

function scene() {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "millrace-unseen-")));
  chmodSync(root, 0o711);
  return { root, at: (path: string) => join(root, path), [Symbol.dispose]: () => clearAway(root) };
}

const mine = { areOthers: false };

test("files are hidden at their real paths, folders with all their content", () => {
  using it = scene();
  mkdirSync(it.at("data/keys"), { recursive: true });
  writeFileSync(it.at("real"), "secret");
  symlinkSync("real", it.at("link"));
  const paths = ["link", "data", "data/keys", "none"].map(it.at);
  const unseen = new Unseen(paths, mine);
  deepEqual([unseen.folders, unseen.files], [[it.at("data")], [it.at("real")]]);
  writeFileSync(it.at("next"), "secret");
  rmSync(it.at("link"));
  symlinkSync("next", it.at("link"));
  deepEqual([unseen.look(), unseen.files], [true, [it.at("next"), it.at("real")]]);
});

test("a created, replaced or removed file is a change; writing into a folder is not", () => {
  using it = scene();
  mkdirSync(it.at("data"));
  const unseen = new Unseen([it.at("data"), it.at("token")], mine);
  writeFileSync(it.at("data/more"), "");
  equal(unseen.look(), false);
  deepEqual(unseen.files, []);
  writeFileSync(it.at("token"), "1");
  deepEqual([unseen.look(), unseen.files, unseen.look()], [true, [it.at("token")], false]);
  writeFileSync(it.at("token.new"), "2");
  renameSync(it.at("token.new"), it.at("token"));
  deepEqual([unseen.look(), unseen.files], [true, [it.at("token")]]);
  rmSync(it.at("token"));
  deepEqual([unseen.look(), unseen.files], [true, []]);
  rmSync(it.at("data"), { recursive: true });
  equal(unseen.look(), false);
  unseen.distrust();
  deepEqual([unseen.look(), unseen.folders], [true, []]);
});

test("for a Kubernetes volume the whole folder is hidden", () => {
  using it = scene();
  mkdirSync(it.at("secrets/..1"), { recursive: true });
  writeFileSync(it.at("secrets/..1/token"), "secret");
  symlinkSync("..1", it.at("secrets/..data"));
  symlinkSync("..data/token", it.at("secrets/token"));
  const unseen = new Unseen([it.at("secrets/token")], mine);
  deepEqual([unseen.folders, unseen.files], [[it.at("secrets")], []]);
});

test("nothing is hidden where other users have no access: no sandbox of theirs could be made", () => {
  using it = scene();
  mkdirSync(it.at("closed/data"), { recursive: true });
  writeFileSync(it.at("closed/token"), "secret");
  writeFileSync(it.at("open"), "secret");
  chmodSync(it.at("closed"), 0o700);
  const paths = ["closed/data", "closed/token", "open"].map(it.at);
  const theirs = new Unseen(paths, { areOthers: true });
  deepEqual([theirs.folders, theirs.files], [[], [it.at("open")]]);
  const ours = new Unseen(paths, mine);
  deepEqual([ours.folders.length, ours.files.length], [1, 2]);
});

test("a sandbox hides files after the machine's root and before the command's folder, if visible", () => {
  const box = {
    bwrap: "bwrap",
    network: false,
    hidden: ["/data"],
    unreadable: ["/etc/key", "/data/key", "/tmp/key", "/run/key", "/dev/shm/key", "/proc/1/fd/3", "/database"],
    scratch: ["/run"],
    shown: [],
    entered: [],
    tmpBytes: 1_000_000,
  };
  const rest = { root: "/root-of-it", workingDirectory: "", argv: ["true"], env: {}, readOnly: [] };
  const words = boxArguments({ ...box, ...rest });
  const hidden = words.flatMap((word, at) => (word === "/dev/null" ? [words[at + 1]] : []));
  deepEqual(hidden, ["/etc/key", "/database"]);
  const [all, key, own] = [words.indexOf("/"), words.indexOf("/etc/key"), words.indexOf(boxRoot)];
  equal(all < key && key < own && words[key - 2] === "--ro-bind", true, words.join(" "));
  equal(emptyBox(box).before.includes("/etc/key"), true);
});
