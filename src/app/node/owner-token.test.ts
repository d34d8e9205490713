import { equal, match, notEqual, ok } from "node:assert/strict";
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { dataFolder, hasLivingNode, lockFolder, publishedEdge, publishEdge, type DataFolder } from "./data-folder.ts";
import { ownerToken, ownerTokenFile, readOwnerToken } from "./owner-token.ts";

const skip = process.platform === "win32" && "needs modes of files";

function scene(): { readonly folder: DataFolder } & Disposable {
  const path = mkdtempSync(join(tmpdir(), "millrace-owner-"));
  return { folder: dataFolder(path), [Symbol.dispose]: () => clearAway(path) };
}

test("a data folder's token is made once, for its owner alone, and kept", { skip }, async () => {
  using it = scene();
  equal(readOwnerToken(it.folder), undefined);
  const token = await ownerToken(it.folder);
  match(token, /^millrace_[\w-]{43}$/, "32 bytes of chance");
  equal(statSync(ownerTokenFile(it.folder)).mode & 0o777, 0o600);
  equal(await ownerToken(it.folder), token);
  equal(readOwnerToken(it.folder), token);
  equal(readdirSync(it.folder.path).join(), "operator.token", "nothing is left beside it");
});

const spoiled: Readonly<Record<string, (file: string) => void>> = {
  "was deleted": (file) => rmSync(file),
  "is empty": (file) => writeFileSync(file, ""),
  "is short enough to be guessed": (file) => writeFileSync(file, "secret"),
  "could be read by the group": (file) => chmodSync(file, 0o640),
  "could be read by everybody": (file) => chmodSync(file, 0o644),
  "is a link": (file) => {
    writeFileSync(`${file}.aside`, readFileSync(file), { mode: 0o600 });
    rmSync(file);
    symlinkSync(`${file}.aside`, file);
  },
};

for (const [what, spoil] of Object.entries(spoiled))
  test(`a data folder's token that ${what} is replaced`, { skip }, async () => {
    using it = scene();
    const old = await ownerToken(it.folder);
    spoil(ownerTokenFile(it.folder));
    writeFileSync(`${ownerTokenFile(it.folder)}.new`, "left by a crash", { mode: 0o644 });
    const token = await ownerToken(it.folder);
    notEqual(token, old);
    equal(readFileSync(ownerTokenFile(it.folder), "utf8"), `${token}\n`);
    equal(statSync(ownerTokenFile(it.folder)).mode & 0o777, 0o600);
  });

test(
  "what a killed node published is gone with the next one's lock, and others cannot write there",
  { skip },
  async () => {
    using it = scene();
    chmodSync(it.folder.path, 0o777);
    await publishEdge(it.folder, { url: "http://127.0.0.1:1" });
    ok(!hasLivingNode(it.folder), "nobody's word");
    await using _lock = await lockFolder(it.folder);
    equal(publishedEdge(it.folder), undefined);
    ok(hasLivingNode(it.folder));
    equal(statSync(it.folder.path).mode & 0o777, 0o755);
    using shared = scene();
    chmodSync(shared.folder.path, 0o1777);
    await using _other = await lockFolder(shared.folder);
    equal(statSync(shared.folder.path).mode & 0o7777, 0o1777, "a folder like /tmp stays as it is");
  },
);
