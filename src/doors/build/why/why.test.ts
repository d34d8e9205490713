import { deepEqual, equal, match } from "node:assert/strict";
import { describe, test } from "node:test";
import { parseDigest, type Digest } from "#base/digest.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryIndex } from "#blobs/memory/memory-index.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { digestOf } from "#blobs/hashing.ts";
import { Action, Command, Directory } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode, encode, type Message } from "#wire/message.ts";
import { tell, type Difference } from "./difference.ts";
import { explainMiss } from "./explain.ts";
import { Seen } from "./seen.ts";

const empty = Buffer.alloc(0);
const plainAction = decode(Action, empty);
const plainCommand = decode(Command, empty);
const plainDirectory = decode(Directory, empty);
const subject = { target: "//app:main", mnemonic: "CppCompile" };
const asked = { tenant: "a", instance: "main" } as const;

function rig() {
  const clock = new ManualClock();
  const blobs = createMemoryBlobs({ clock, sizeBytesMax: 1 << 20 });
  const index = createMemoryIndex();
  const seen = new Seen({ index, wallMs: () => clock.wallMs() });
  const put = async <T>(message: Message<T>, value: T): Promise<Digest> => {
    const bytes = encode(message, value);
    const digest = digestOf(bytes);
    await blobs.write(digest, bytes);
    return digest;
  };
  const named = (digest: Digest) => {
    const { hash = "", sizeBytes = 0 } = parseDigest(digest) ?? {};
    return { hash, sizeBytes };
  };
  /** Files by path, one level of folders deep. */
  const tree = async (files: Readonly<Record<string, string>>): Promise<Digest> => {
    const folders = new Map<string, [string, string][]>([["", []]]);
    for (const [path, text] of Object.entries(files)) {
      const [name = "", folder = ""] = path.split("/").toReversed();
      folders.set(folder, [...(folders.get(folder) ?? []), [name, text]]);
    }
    const files_ = (folder: string) =>
      (folders.get(folder) ?? []).map(([name, text]) => ({
        name,
        digest: named(digestOf(Buffer.from(text))),
        isExecutable: false,
        nodeProperties: undefined,
      }));
    const directories = [];
    for (const name of folders.keys())
      if (name !== "")
        directories.push({ name, digest: named(await put(Directory, { ...plainDirectory, files: files_(name) })) });
    return await put(Directory, { ...plainDirectory, files: files_(""), directories });
  };
  const action = async (
    command: Partial<Command>,
    files: Readonly<Record<string, string>>,
    more: Partial<Action> = {},
  ): Promise<Digest> =>
    await put(Action, {
      ...plainAction,
      commandDigest: named(await put(Command, { ...plainCommand, ...command })),
      inputRootDigest: named(await tree(files)),
      ...more,
    });
  const missed = (digest: Digest): void =>
    seen.missed(asked.tenant, asked.instance, digest, {
      ...subject,
      invocation: "i1",
      reason: { kind: "never-stored" },
    });
  const why = (digest: Digest) => explainMiss({ ...asked, action: digest }, seen, blobs);
  return { clock, blobs, index, seen, put, named, action, missed, why };
}

const lines = (differences: readonly Difference[]): readonly string[] => differences.map(tell);

describe("why did it miss?", () => {
  const env = (...pairs: readonly (readonly [string, string])[]) => pairs.map(([name, value]) => ({ name, value }));

  test("exactly what differs from the earlier action is reported", async () => {
    const { action, seen, missed, why } = rig();
    const before = await action(
      { arguments: ["cc", "-O1", "-c", "a.c"], environmentVariables: env(["CC", "gcc"], ["LANG", "C"]) },
      { "a.c": "one", "include/a.h": "same", "include/b.h": "old", "gone.h": "x" },
    );
    await seen.stored("a", "main", before, subject);
    const after = await action(
      { arguments: ["cc", "-O2", "-c", "a.c"], environmentVariables: env(["CC", "clang"], ["LANG", "C"]) },
      { "a.c": "one", "include/a.h": "same", "include/b.h": "new", "new.h": "y" },
      { platform: { properties: [{ name: "OSFamily", value: "linux" }] } },
    );
    missed(after);
    const { verdict, nearest, differences } = await why(after);
    equal(verdict, "differs");
    equal(nearest?.action, before);
    const told = lines(differences);
    deepEqual(told.slice(0, 3), [
      'platform property OSFamily: "linux" is new',
      'argument 1: "-O1" -> "-O2"',
      'environment variable CC: "gcc" -> "clang"',
    ]);
    match(told[3] ?? "", /^input gone\.h: "[0-9a-f]{64}\/1" is gone$/);
    match(told[4] ?? "", /^input new\.h: "[0-9a-f]{64}\/1" is new$/);
    match(told[5] ?? "", /^input include\/b\.h: "[0-9a-f]{64}\/3" -> "[0-9a-f]{64}\/3"$/);
    equal(told.length, 6);
  });

  test("of several earlier actions the closest one is used", async () => {
    const { action, seen, missed, why } = rig();
    const files = { "a.c": "one" };
    const near = await action({ arguments: ["cc", "-O1", "a.c"] }, files);
    const far = await action({ arguments: ["ld", "-static", "b.c"] }, { "b.c": "two" });
    for (const one of [near, far]) await seen.stored("a", "main", one, subject);
    const now = await action({ arguments: ["cc", "-O2", "a.c"] }, files);
    missed(now);
    const { nearest, differences } = await why(now);
    equal(nearest?.action, near);
    deepEqual(lines(differences), ['argument 1: "-O1" -> "-O2"']);
  });

  test("one more argument in the middle is one difference", async () => {
    const { action, seen, missed, why } = rig();
    await seen.stored("a", "main", await action({ arguments: ["cc", "a.c", "-o", "a"] }, {}), subject);
    const now = await action({ arguments: ["cc", "-g", "a.c", "-o", "a"] }, {});
    missed(now);
    deepEqual(lines((await why(now)).differences), ['argument 1: "-g" is new']);
  });

  test("inputs that were never uploaded are reported as different, and no more", async () => {
    const { action, seen, missed, why, named } = rig();
    const root = (text: string) => ({ inputRootDigest: named(digestOf(Buffer.from(text))) });
    await seen.stored("a", "main", await action({ arguments: ["x"] }, {}, root("one")), subject);
    const now = await action({ arguments: ["x"] }, {}, root("two"));
    missed(now);
    const [line = "", ...rest] = lines((await why(now)).differences);
    match(line, /^inputs: ".*" -> ".*"; not in the store/);
    deepEqual(rest, []);
  });

  test("other reasons are reported as what they are", async () => {
    const { action, seen, missed, why, named } = rig();
    const one = await action({ arguments: ["x"] }, {});
    equal((await why(one)).verdict, "unknown");
    missed(one);
    equal((await why(one)).verdict, "first-of-its-target");
    for (const reason of [{ kind: "incomplete", missing: one } as const, { kind: "revoked" } as const]) {
      seen.missed("a", "main", one, { ...subject, invocation: "i2", reason });
      equal((await why(one)).verdict, reason.kind);
    }
    const unread = digestOf(Buffer.from("an action that nobody uploaded"));
    await seen.stored("a", "main", one, subject);
    missed(unread);
    equal((await why(unread)).verdict, "unreadable");
    equal(named(unread).hash.length, 64);
  });

  test("another tenant's actions explain nothing", async () => {
    const { action, seen, missed, why } = rig();
    await seen.stored("b", "main", await action({ arguments: ["secret"] }, {}), subject);
    const now = await action({ arguments: ["x"] }, {});
    missed(now);
    equal((await why(now)).verdict, "first-of-its-target");
  });

  test("what was recorded is there after a restart", async () => {
    const { action, seen, missed, index, blobs, clock } = rig();
    const before = await action({ arguments: ["x", "1"] }, {});
    await seen.stored("a", "main", before, subject);
    const now = await action({ arguments: ["x", "2"] }, {});
    missed(now);
    await seen.written();
    const again = new Seen({ index, wallMs: () => clock.wallMs() });
    const { differences, miss } = await explainMiss({ ...asked, action: now }, again, blobs);
    deepEqual(lines(differences), ['argument 1: "1" -> "2"']);
    equal(miss?.target, subject.target);
  });

  test("memory is bounded: the oldest notes go first", async () => {
    const { index, clock, action, blobs } = rig();
    const few = new Seen({
      index: { ...index, put: async () => ({ kind: "written", version: 1 }) },
      wallMs: () => clock.wallMs(),
      misses: 2,
    });
    const digests = await Promise.all([1, 2, 3].map((no) => action({ arguments: [`${no}`] }, {})));
    for (const digest of digests)
      few.missed("a", "main", digest, { ...subject, invocation: "", reason: { kind: "never-stored" } });
    const verdicts = await Promise.all(digests.map((digest) => explainMiss({ ...asked, action: digest }, few, blobs)));
    deepEqual(
      verdicts.map(({ verdict }) => verdict),
      ["unknown", "first-of-its-target", "first-of-its-target"],
    );
  });
});
