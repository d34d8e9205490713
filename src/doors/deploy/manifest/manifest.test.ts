import { deepEqual, equal, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { manifestText, parseManifest, segmentBytes, type Manifest } from "./manifest.ts";

const digest = (sizeBytes: number): string => `${"a".repeat(64)}/${sizeBytes}`;
const run = {
  command: ["./web"],
  env: {},
  probe: null,
  withinMs: 1_000,
  everyMs: 100,
  drainMs: 0,
  keepVersions: 3,
  diskBytesMax: 1_000,
};
const manifest = (more: Partial<Manifest> = {}): Manifest => ({
  format: 1,
  service: "web",
  sha: "0123456789abcdef",
  builder: "j1-1",
  run,
  files: [{ path: "bin/web", executable: true, sizeBytes: 5, segments: [digest(5)] }],
  links: [],
  ...more,
});
const file = (path: string) => ({ path, executable: false, sizeBytes: 5, segments: [digest(5)] });

describe("a manifest", () => {
  test("has one spelling, whatever the order of its files", () => {
    const [a, b] = [file("a"), file("b")];
    equal(manifestText(manifest({ files: [a, b] })), manifestText(manifest({ files: [b, a] })));
    deepEqual(parseManifest(manifestText(manifest())), manifest());
  });

  for (const path of ["../etc/passwd", "/etc/passwd", "a/../../b", "a//b", "./a", "", "a\\b", "a\0b", "a/."])
    test(`MF1: the path ${JSON.stringify(path)} is refused`, () => {
      throws(() => parseManifest(manifestText(manifest({ files: [file(path)] }))), /read manifest: invalid/);
    });

  for (const [path, target] of [
    ["a", "/etc/passwd"],
    ["a", "../b"],
    ["a/b", "../../c"],
    ["a/b", "x/../../../c"],
  ] as const)
    test(`MF1: a link from ${path} to ${target} is refused`, () => {
      throws(() => parseManifest(manifestText(manifest({ links: [{ path, target }] }))), /leaves the release/);
    });

  test("MF1: a link within the release is taken", () => {
    parseManifest(manifestText(manifest({ links: [{ path: "a/b", target: "../bin/web" }] })));
  });

  test("MF1: two entries with one path, and a file that is also a folder, are refused", () => {
    throws(() => parseManifest(manifestText(manifest({ files: [file("a"), file("a")] }))), /two entries/);
    throws(() => parseManifest(manifestText(manifest({ files: [file("a"), file("a/b")] }))), /a file and a folder/);
    const link = { path: "a", target: "b" };
    throws(() => parseManifest(manifestText(manifest({ files: [file("a/b")], links: [link] }))), /a file and a folder/);
  });

  test("segments must add up to the size, and all but the last be full", () => {
    const wrong = { ...file("a"), sizeBytes: 6 };
    throws(() => parseManifest(manifestText(manifest({ files: [wrong] }))), /do not add up/);
    const uneven = { ...file("a"), sizeBytes: 12, segments: [digest(5), digest(7)] };
    throws(() => parseManifest(manifestText(manifest({ files: [uneven] }))), /every segment but the last/);
    const full = { ...file("a"), sizeBytes: segmentBytes + 7, segments: [digest(segmentBytes), digest(7)] };
    parseManifest(manifestText(manifest({ files: [full] })));
  });

  test("unknown fields and text that is not JSON are refused", () => {
    throws(() => parseManifest(JSON.stringify({ ...manifest(), more: 1 })), /read manifest: invalid/);
    throws(() => parseManifest("{"), /not JSON/);
  });
});
