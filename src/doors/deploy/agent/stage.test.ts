import { equal, ok, rejects } from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { segmentBytes, type Manifest } from "#doors/deploy/manifest/manifest.ts";
import { stage, stagedHashes, versionFolder } from "./stage.ts";

const root = mkdtempSync(join(tmpdir(), "millrace-stage-"));
after(() => rmSync(root, { recursive: true, force: true }));

const name = (bytes: Uint8Array): string => `${createHash("sha256").update(bytes).digest("hex")}/${bytes.length}`;
const digest = `${"d".repeat(64)}/1`;
const first = Buffer.alloc(segmentBytes, 7);
const rest = Buffer.from("the end");
const small = Buffer.from("small");
const blobs = new Map([first, rest, small].map((bytes) => [name(bytes), bytes]));

const manifest: Manifest = {
  format: 1,
  service: "web",
  sha: "0123456789",
  builder: "j1-1",
  run: {
    command: ["./web"],
    env: {},
    probe: null,
    withinMs: 1,
    everyMs: 10,
    drainMs: 0,
    keepVersions: 2,
    diskBytesMax: 1,
  },
  files: [
    { path: "bin/web", executable: true, sizeBytes: first.length + rest.length, segments: [name(first), name(rest)] },
    { path: "etc/deep/note", executable: false, sizeBytes: small.length, segments: [name(small)] },
    { path: "empty", executable: false, sizeBytes: 0, segments: [] },
  ],
  links: [{ path: "web", target: "bin/web" }],
};

const parts = (bytes: Uint8Array) => ({
  async *[Symbol.asyncIterator]() {
    for (let at = 0; at < bytes.length; at += 1024 * 1024) yield bytes.subarray(at, at + 1024 * 1024);
  },
});

/** A source that counts what it was asked for. */
function source(more: ReadonlyMap<string, Buffer> = new Map()) {
  const asked: string[] = [];
  const read = (wanted: string) => {
    asked.push(wanted);
    return parts(more.get(wanted) ?? blobs.get(wanted) ?? Buffer.of());
  };
  return { asked, read };
}

describe("staging", () => {
  test("a segment that ends early is no proof against the version: it is fetched again", async () => {
    const folder = join(root, "short");
    const short = source(new Map([[name(small), small.subarray(1)]]));
    await rejects(stage(folder, digest, manifest, short.read), (error) => isFault(error, "unavailable"));
    await stage(folder, digest, manifest, source().read);
    equal(readFileSync(join(versionFolder(folder, digest), "etc/deep/note"), "utf8"), "small");
  });

  test("a release is complete under its final name, with modes and links", async () => {
    const folder = join(root, "whole");
    const { read } = source();
    const done = await stage(folder, digest, manifest, read);
    equal(done, versionFolder(folder, digest));
    ok(readFileSync(join(done, "bin/web")).equals(Buffer.concat([first, rest])));
    equal(statSync(join(done, "bin/web")).mode & 0o777, 0o755);
    equal(statSync(join(done, "etc/deep/note")).mode & 0o777, 0o644);
    equal(readFileSync(join(done, "empty")).length, 0);
    equal(readlinkSync(join(done, "web")), "bin/web");
    equal((await stagedHashes(folder)).size, 1);
  });

  test("ST1: a version with a wrong byte never gets its final name", async () => {
    const folder = join(root, "wrong");
    const flipped = Buffer.from(rest);
    flipped[0] = 0;
    const { read } = source(new Map([[name(rest), flipped]]));
    await rejects(stage(folder, digest, manifest, read), (error) => isFault(error, "corrupt"));
    equal(existsSync(versionFolder(folder, digest)), false);
    equal((await stagedHashes(folder)).size, 0);
  });

  test("ST1: bytes beyond a segment's size are refused", async () => {
    const { read } = source(new Map([[name(small), Buffer.concat([small, small])]]));
    await rejects(stage(join(root, "long"), digest, manifest, read), (error) => isFault(error, "corrupt"));
  });

  test("ST2: staging goes on where it stopped, and fetches damaged segments again", async () => {
    const folder = join(root, "again");
    const broken = source(new Map([[name(small), Buffer.from("wrong")]]));
    await rejects(stage(folder, digest, manifest, broken.read));
    const second = source();
    // What a crash left: the second segment of the first file is damaged.
    const work = `${versionFolder(folder, digest)}.staging`;
    writeFileSync(join(work, "bin/web"), Buffer.concat([first, Buffer.from("THE END")]));
    await stage(folder, digest, manifest, second.read);
    equal(second.asked.includes(name(first)), false, "the whole segment was not fetched again");
    equal(second.asked.includes(name(rest)), true);
    ok(readFileSync(join(versionFolder(folder, digest), "bin/web")).equals(Buffer.concat([first, rest])));
  });

  test("ST3: a release that cannot fit is refused before the first byte", async () => {
    const huge: Manifest = {
      ...manifest,
      files: [{ path: "huge", executable: false, sizeBytes: Number.MAX_SAFE_INTEGER, segments: [] }],
    };
    const { asked, read } = source();
    await rejects(stage(join(root, "full"), digest, huge, read), (error) => isFault(error, "exhausted"));
    equal(asked.length, 0);
  });
});
