/** From a release to its packs and back, with files, threads and a store in memory. */
import { deepEqual, equal, ok, rejects, throws } from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { Random } from "#base/random.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import { stage, versionFolder } from "#doors/deploy/agent/stage.ts";
import { segmentBytes, type Alternative, type Manifest } from "#doors/deploy/manifest/manifest.ts";
import { clearAway } from "#testing/clear-away.ts";
import { Filler } from "./fill.ts";
import { makeAlternatives, type MakePorts } from "./make-alternatives.ts";
import { cheapest, packContent, parsePack, type Pack } from "./pack.ts";
import { blocksOf, Windows } from "./windows.ts";

const root = mkdtempSync(join(tmpdir(), "millrace-delta-"));
after(() => clearAway(root));
const random = new Random("alternatives");
const noise = (length: number): Buffer => Buffer.from(Uint8Array.from({ length }, () => random.below(256)));
const blobs = createMemoryBlobs({ clock, sizeBytesMax: 2 ** 30 });

type Files = Readonly<Record<string, Buffer>>;
async function content(files: Files): Promise<Manifest> {
  const entries = [];
  for (const [path, bytes] of Object.entries(files)) {
    const segments: string[] = [];
    for (let at = 0; at < bytes.length; at += segmentBytes) {
      const segment = bytes.subarray(at, at + segmentBytes);
      await blobs.write(sha256Digest(segment), segment);
      segments.push(sha256Digest(segment));
    }
    entries.push({ path, executable: false, sizeBytes: bytes.length, segments });
  }
  return { files: entries, links: [] } as unknown as Manifest;
}

const ports: MakePorts = {
  blobs,
  pin: async () => undefined,
  signal: new AbortController().signal,
  hurry: new AbortController().signal,
  missed: (_, error) => {
    throw error;
  },
};

const program = noise(700_000);
const changed = Buffer.concat([program.subarray(0, 300_000), noise(200), program.subarray(300_000)]);
for (let at = 10; at < changed.length; at += 1_500) changed[at] = ((changed[at] ?? 0) + 1) & 255;
const text = Buffer.from("the same words again and again\n".repeat(3_000));
const picture = noise(90_000);
const before: Files = { "bin/web": program, "share/picture": picture, "lib/a-1.2.js": text.subarray(0, 60_000) };
const now: Files = { "bin/web": changed, "share/picture": picture, "lib/a-1.3.js": text, empty: Buffer.alloc(0) };
const baseDigest = `${"b".repeat(64)}/1`;
const freshDigest = `${"f".repeat(64)}/1`;

const base = await content(before);
const fresh = await content(now);
const made = await makeAlternatives(fresh, [{ digest: baseDigest, manifest: base }], ports);

async function* readBlob(digest: string): AsyncGenerator<Uint8Array> {
  yield* blobs.read(digest);
}

/** A machine that has the older release. */
function machine(name: string, older: Files = before) {
  const folder = join(root, name);
  const versions = join(folder, "versions");
  const at = versionFolder(versions, baseDigest);
  for (const [path, bytes] of Object.entries(older)) {
    mkdirSync(dirname(join(at, path)), { recursive: true });
    writeFileSync(join(at, path), bytes);
  }
  const lines: string[] = [];
  let fetched = 0;
  const segment = async function* (digest: string): AsyncGenerator<Uint8Array> {
    for await (const part of readBlob(digest)) {
      fetched += part.length;
      yield part;
    }
  };
  const filler = new Filler({ segment, log: (line) => lines.push(line), packs: join(folder, "packs") });
  const staged = async (alternatives: readonly Alternative[]): Promise<string> => {
    const manifest = { ...fresh, alternatives: [...alternatives] };
    const about = { digest: freshDigest, manifest, older: [{ manifest: base, folder: at }], isRollback: false };
    return await stage(versions, freshDigest, manifest, segment, { fill: (work) => filler.fill(work, about) });
  };
  return { staged, lines, fetched: () => fetched };
}

function equalFiles(folder: string): void {
  for (const [path, bytes] of Object.entries(now))
    ok(readFileSync(join(folder, path)).equals(bytes), `${path} has wrong bytes`);
}

describe("alternatives", () => {
  test("are made against the older release and alone, and say what they cost", () => {
    deepEqual(
      made.alternatives.map((each) => each.base),
      [baseDigest, null],
    );
    const [delta, alone] = made.alternatives;
    ok((delta?.sizeBytes ?? Infinity) < 10_000, JSON.stringify(delta));
    ok((alone?.sizeBytes ?? Infinity) < 850_000, JSON.stringify(alone));
  });

  test("a machine with the older release fetches the difference", async () => {
    const { staged, fetched, lines } = machine("with-base");
    equalFiles(await staged(made.alternatives));
    ok(fetched() < 20_000, `${fetched()} bytes were fetched: ${lines.join("; ")}`);
  });

  test("RB1: a damaged older release costs bytes, not correctness", async () => {
    const damaged = Buffer.from(program);
    damaged.fill(0, 100_000, 100_010);
    const { staged, lines } = machine("damaged", { ...before, "bin/web": damaged, "share/picture": noise(90_000) });
    equalFiles(await staged(made.alternatives));
    ok(lines.some((line) => line.includes("its bytes do not have this digest")));
  });

  test("RB1: an older release with a file that is gone or short, too", async () => {
    const { "share/picture": _, ...rest } = before;
    const { staged } = machine("gone", { ...rest, "bin/web": program.subarray(0, 1_000) });
    equalFiles(await staged(made.alternatives));
  });

  test("RB1: packs that are missing, hostile, or for another base cost bytes, not correctness", async () => {
    const [delta] = made.alternatives;
    const wrong = async (change: (pack: Pack) => unknown): Promise<Alternative> => {
      const chunks: Uint8Array[] = [];
      for await (const part of blobs.read(delta?.pack ?? "")) chunks.push(part.slice());
      const bytes = Buffer.from(JSON.stringify(change(JSON.parse(Buffer.concat(chunks).toString()) as Pack)));
      await blobs.write(sha256Digest(bytes), bytes);
      return { base: baseDigest, pack: sha256Digest(bytes), sizeBytes: 1 };
    };
    const hostile: readonly Alternative[] = [
      { base: baseDigest, pack: `${"0".repeat(64)}/100`, sizeBytes: 1 },
      await wrong((pack) => ({ ...pack, base: null })),
      await wrong((pack) => ({ ...pack, blocks: [] })),
      await wrong((pack) => ({ ...pack, blocks: pack.blocks.map((block) => ({ ...block, how: "zstd" })) })),
      await wrong((pack) => ({ ...pack, blocks: pack.blocks.map((block) => ({ ...block, how: "raw" })) })),
      await wrong((pack) => ({ ...pack, segments: [sha256Digest(picture)] })),
    ];
    for (const [i, each] of hostile.entries()) {
      const { staged, lines } = machine(`hostile-${i}`);
      equalFiles(await staged([each]));
      ok(
        lines.some((line) => line.includes("the release itself is fetched")),
        `case ${i}: ${lines.join("; ")}`,
      );
    }
  });

  test("when the time is over, what is not encoded travels as it is", async () => {
    const hurry = new AbortController();
    hurry.abort();
    const none = await makeAlternatives(fresh, [{ digest: baseDigest, manifest: base }], {
      ...ports,
      hurry: hurry.signal,
    });
    deepEqual(none.alternatives, []);
  });

  test("an attempt that is stopped makes none", async () => {
    const stop = new AbortController();
    stop.abort(new Error("stopped"));
    await rejects(makeAlternatives(fresh, [{ digest: baseDigest, manifest: base }], { ...ports, signal: stop.signal }));
  });
});

describe("a pack's description", () => {
  const segments = [sha256Digest(picture)];
  const units = { bytes: 65_536, sha256: Array.from({ length: 2 }, () => "a".repeat(43)) };
  const pack: Pack = { format: 1, base: null, blocks: [{ segments, how: "raw", bytes: 90_000 }], segments, units };
  test("is read as it was written", () => deepEqual(parsePack(JSON.stringify(pack)), pack));
  const refused: readonly (readonly [string, unknown])[] = [
    ["blocks that do not add up", { ...pack, blocks: [{ segments, how: "raw", bytes: 89_999 }] }],
    ["units that do not add up", { ...pack, units: { ...units, sha256: [] } }],
    [
      "a block beyond the bound",
      { ...pack, blocks: [{ segments: [`${"a".repeat(64)}/${segmentBytes + 1}`], how: "raw", bytes: 90_000 }] },
    ],
    ["an unknown encoding", { ...pack, blocks: [{ segments, how: "magic", bytes: 90_000 }] }],
    ["an unknown field", { ...pack, more: 1 }],
    ["a negative length", { ...pack, blocks: [{ segments, how: "raw", bytes: -1 }] }],
  ];
  for (const [name, value] of refused)
    test(`with ${name} is refused`, () => throws(() => parsePack(JSON.stringify(value)), /read pack/));
  test("has the content of its segments", () => equal(packContent(pack).files[0]?.sizeBytes, 90_000));
});

test("the cheapest alternative is chosen by what the machine has", () => {
  const alternative = (of: string | null, sizeBytes: number): Alternative => ({
    base: of,
    pack: freshDigest,
    sizeBytes,
  });
  const all = [alternative("near", 10), alternative("far", 50), alternative(null, 300)];
  const pick = (missingBytes: number, ...has: readonly string[]) =>
    cheapest(all, { missingBytes, has: (each) => has.includes(each) })?.sizeBytes;
  equal(pick(1_000, "near", "far"), 10);
  equal(pick(1_000, "far"), 50);
  equal(pick(1_000), 300);
  equal(pick(5, "near"), undefined, "what is missing costs less");
});

describe("windows", () => {
  const named = (path: string, sizes: readonly number[], letter: string) => ({
    path,
    executable: false,
    sizeBytes: sizes.reduce((a, b) => a + b, 0),
    segments: sizes.map((size, i) => `${(letter + i.toString(16)).padEnd(64, "0")}/${size}`),
  });
  const old = {
    files: [
      named(
        "big",
        Array.from({ length: 8 }, () => segmentBytes),
        "a",
      ),
      named("lib/x-1.2.so", [500], "b"),
    ],
  };
  const next = {
    files: [
      named(
        "big",
        Array.from({ length: 8 }, () => segmentBytes),
        "c",
      ),
      named("lib/x-1.3.so", [600], "d"),
    ],
  };
  const windows = new Windows(next, old);
  const blocks = blocksOf(next, old);
  test("of a large file are bounded, and around the same place", () => {
    equal(blocks.length, 9);
    deepEqual(windows.of(blocks[0] ?? []), [{ row: 0, length: 2 * segmentBytes }]);
    deepEqual(windows.of(blocks[4] ?? []), [{ row: 3.5 * segmentBytes, length: 2 * segmentBytes }]);
    deepEqual(windows.of(blocks[7] ?? []), [{ row: 6 * segmentBytes, length: 2 * segmentBytes }]);
  });
  test("of a file whose name carries a version are found", () =>
    deepEqual(windows.of(blocks[8] ?? []), [{ row: 8 * segmentBytes, length: 500 }]));
});
