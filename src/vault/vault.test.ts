import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { newKeyLine, parseKeys } from "./key-list.ts";
import { keysInFile, keysInVariable, keysOfCommand, ownKeysFile, type KeySource } from "./key-source.ts";
import { openVault, secretBytesMax } from "./vault.ts";

const value = "correct horse battery staple";
const one = newKeyLine();
const two = newKeyLine();
const idOf = (line: string): string => line.split(" ")[0] ?? "";

function rig(source: KeySource = { read: async () => parseKeys(one, "test") }) {
  const clock = new ManualClock();
  const records = watchedRecords(
    memoryRecords(() => clock.wallMs()),
    clock,
  );
  const documents = async (): Promise<string> =>
    (await records.list({ kind: "vault.secret", limit: 100 })).records.map(({ document }) => document).join("\n");
  return { clock, records, documents, vault: openVault({ records, source, clock }) };
}

async function folder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), "millrace-vault-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) };
}

describe("the vault", () => {
  test("VA1 gives values back to the program, and shows none in what is stored and listed", async () => {
    const { vault, documents } = rig();
    const set = await vault.set("acme", "db/password", value, "ada");
    deepEqual([set.bytes, set.key, set.by], [value.length, idOf(one), "ada"]);
    equal(String(await vault.read("acme", "db/password")), value);
    const { secrets } = await vault.list({ tenant: "acme", limit: 10 });
    for (const text of [await documents(), JSON.stringify(secrets)])
      for (const shown of [value, Buffer.from(value).toString("base64url"), Buffer.from(value).toString("hex")])
        ok(!text.includes(shown));
    const again = await vault.set("acme", "db/password", "other", "bob");
    ok(again.version > set.version);
    equal(String(await vault.read("acme", "db/password")), "other");
    equal(await vault.read("globex", "db/password"), undefined);
    equal(await vault.remove("acme", "db/password"), true);
    equal(await vault.read("acme", "db/password"), undefined);
  });

  test("VA2 a value that was moved to another tenant or name, or changed, does not open", async () => {
    const { vault, records } = rig();
    await vault.set("acme", "a", value, "ada");
    const found = await records.read({ tenant: "acme", kind: "vault.secret", name: "a" });
    for (const [tenant, name] of [
      ["globex", "a"],
      ["acme", "b"],
    ] as const) {
      await records.create({ tenant, kind: "vault.secret", name }, found?.document ?? "");
      await rejects(vault.read(tenant, name), /corrupt/);
    }
    const sealed = JSON.parse(found?.document ?? "") as { data: string };
    const flipped = Buffer.from(sealed.data, "base64url");
    flipped[15] = (flipped[15] ?? 0) ^ 1;
    const document = JSON.stringify({ ...sealed, data: flipped.toString("base64url") });
    await records.replace({ tenant: "acme", kind: "vault.secret", name: "a" }, found?.version ?? 0, document);
    await rejects(vault.read("acme", "a"), /corrupt/);
  });

  test("VA3 keys change without a moment in which a value cannot be read", async () => {
    let text = one;
    const { vault, clock, documents } = rig({ read: async () => parseKeys(text, "test") });
    for (let n = 0; n < 5; n += 1) await vault.set("acme", `s${n}`, `${value} ${n}`, "ada");
    text = `${one}\n${two}`; // first every node learns of it
    equal(String(await vault.read("acme", "s3")), `${value} 3`);
    text = `${two}\n${one}`;
    await clock.advance(11_000);
    equal((await vault.set("acme", "new", value, "ada")).key, idOf(two));
    equal(String(await vault.read("acme", "s3")), `${value} 3`);
    deepEqual(await vault.rotate({ withNewKey: true }), { key: idOf(two), rewrapped: 5, kept: 1 });
    ok(!(await documents()).includes(idOf(one)));
    text = two;
    for (let n = 0; n < 5; n += 1) equal(String(await vault.read("acme", `s${n}`)), `${value} ${n}`);
    text = one;
    await clock.advance(11_000);
    await rejects(vault.read("acme", "s3"), /no such key/);
  });

  test("limits sizes", async () => {
    const { vault } = rig();
    for (const wrong of ["", "x".repeat(secretBytesMax + 1)])
      await rejects(vault.set("acme", "a", wrong, "ada"), (error: Error) => /1 to 65536 bytes/.test(error.message));
    await vault.set("acme", "a", "x".repeat(secretBytesMax), "ada");
    equal((await vault.read("acme", "a"))?.length, secretBytesMax);
  });

  test("has a space of the program's own, which is not listed with what people set", async () => {
    const { vault, records, clock } = rig();
    const system = openVault({ records, source: { read: async () => parseKeys(one, "test") }, clock }, "system");
    await system.set("*", "issuer", value, "node");
    equal((await vault.list({ limit: 10 })).secrets.length, 0);
    equal(await vault.read("*", "issuer"), undefined);
  });
});

describe("keys of the vault", () => {
  test("a node's own are made at first use for its owner alone, and a new one goes first", async () => {
    await using at = await folder();
    const path = join(at.path, "vault.keys");
    const source = ownKeysFile(path, async () => false);
    const [first] = await source.read();
    equal((await stat(path)).mode & 0o777, 0o600);
    equal((await source.read())[0].id, first.id);
    const [second, third] = (await source.add?.()) ?? [];
    ok(second && second.id !== first.id);
    equal(third?.id, first.id);
    const { vault } = rig(source);
    await vault.set("acme", "a", value, "ada");
    const rotated = await vault.rotate({ withNewKey: true });
    deepEqual([rotated.rewrapped, (await readFile(path, "utf8")).trim().split("\n").length], [1, 3]);
    equal(String(await vault.read("acme", "a")), value);
  });

  test("a node's own that are gone are not replaced while something is sealed with them", async () => {
    await using at = await folder();
    const path = join(at.path, "vault.keys");
    let isSealed = false;
    const source = ownKeysFile(path, async () => isSealed);
    await source.read();
    isSealed = true;
    await source.read();
    await rm(path);
    await rejects(source.read(), /only its keys open: bring it back/);
    await writeFile(path, `${newKeyLine()}\n`, { mode: 0o600 });
    await source.read();
  });

  test("that were damaged are refused, and seal nothing", () => {
    const text = newKeyLine();
    for (let at = 0; at < text.length; at += 1) {
      const flipped = Buffer.from(text);
      flipped[at] = (flipped[at] ?? 0) ^ 4;
      let keys: ReturnType<typeof parseKeys> | undefined;
      try {
        keys = parseKeys(flipped.toString("latin1"), "test");
      } catch (error) {
        ok(!String(error).includes(text.split(" ")[1] ?? ""), "no key in an error");
      }
      if (keys) ok(keys[0].id !== idOf(text) || Buffer.from(keys[0].bytes).equals(parseKeys(text, "t")[0].bytes));
    }
  });

  test("come from a file that is closed to others, a variable or a command", async () => {
    await using at = await folder();
    const path = join(at.path, "keys");
    await writeFile(path, `# comment\n${one}\n\n${two}\n`, { mode: 0o600 });
    const id = idOf(one);
    equal((await keysInFile(path).read())[0].id, id);
    equal((await keysInVariable("KEYS", { KEYS: one }).read())[0].id, id);
    equal((await keysOfCommand(["cat", path]).read())[0].id, id);
    await chmod(path, 0o644);
    await rejects(keysInFile(path).read(), /chmod 600/);
  });

  test("that are wrong are refused without showing them", async () => {
    const bad = "k1 c2hvcnQ";
    await rejects(keysInVariable("KEYS", { KEYS: bad }).read(), (error: Error) => {
      ok(!error.message.includes("c2hvcnQ"));
      match(error.message, /line 1.*new-key/);
      return true;
    });
    await rejects(keysInVariable("KEYS", {}).read(), /there is no key/);
    await rejects(keysInVariable("KEYS", { KEYS: `${one}\n${one}` }).read(), /same id/);
    await rejects(keysOfCommand(["sh", "-c", "echo hidden >&2; exit 3"]).read(), (error: Error) => {
      match(error.message, /it failed \(3\)/);
      return !error.message.includes("hidden");
    });
  });
});
