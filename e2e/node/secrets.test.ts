// Secrets on a real node: set by the command line, encrypted on the disk, and never shown again.
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtemp, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { clearAway } from "#testing/clear-away.ts";
import { cliLine } from "#testing/cli-line.ts";

const folder = await mkdtemp(join(tmpdir(), "millrace-secrets-"));
const data = dataFolder(join(folder, "data"));
const logged: string[] = [];
const config = Config.parse({ cluster: { shards: 1 }, edge: { listen: ["127.0.0.1:0"] }, worker: { enabled: false } });
const start = () => startNode(config, data, { log: (line) => void logged.push(line) });
let node = await start();
after(async () => {
  await node.stop();
  clearAway(folder);
});

const value = "hunter2-correct-horse-battery";
const line = (...args: readonly string[]) => cliLine(data.path, ...args);

async function filesWith(text: string): Promise<readonly string[]> {
  const files = await readdir(data.path, { recursive: true, withFileTypes: true });
  const found = [];
  for (const file of files.filter((each) => each.isFile())) {
    const path = join(file.parentPath, file.name);
    if ((await readFile(path)).includes(text)) found.push(file.name);
  }
  return found;
}

describe("secrets of a node", { timeout: 60_000 }, () => {
  test("are set, listed, rotated and deleted, and their values are in no file, answer or log", async () => {
    const file = join(folder, "value");
    await writeFile(file, `${value}\n`);
    const set = await line("secret", "set", "db/password", "--file", file);
    deepEqual([set.code, set.out, set.notes], [0, ["db/password: set, version 1"], []]);
    equal((await stat(join(data.path, "vault.keys"))).mode & 0o777, 0o600);
    const listed = await line("secret", "list", "--json");
    const [shown] = listed.out.map((text) => JSON.parse(text) as { name: string; bytes: number; key: string });
    deepEqual([shown?.name, shown?.bytes], ["db/password", value.length]);
    const rotated = await line("secret", "rotate");
    match(rotated.out[0] ?? "", /^\d+ secrets are wrapped by k/);
    const [after] = (await line("secret", "list", "--json")).out.map((text) => JSON.parse(text) as { key: string });
    ok(after && after.key !== shown?.key);
    await node.stop();
    deepEqual(await filesWith(value), []);
    ok(![...logged, ...listed.out, ...set.out].join("\n").includes(value));
    node = await start();
    equal((await line("secret", "list", "db/")).out.length, 2, "it is there after a restart");
    deepEqual((await line("secret", "delete", "db/password")).out, ["db/password: deleted"]);
    const again = await line("secret", "delete", "db/password");
    equal(again.code, 1);
    match(again.notes.join(), /no such secret/);
  });
});
