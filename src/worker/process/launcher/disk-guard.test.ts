import { deepEqual, equal, ok } from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fillerAmong, freeBytes, ownWeight, shortOf } from "./disk-guard.ts";
import { rigUidBase, SpawnerRig } from "#worker/process/testing/rig.ts";

/** Writes to memory go to no device, and are counted for no process. */
const tmpfs = 0x0102_1994;
const isDisk = process.platform === "linux" && statfsSync(tmpdir()).type !== tmpfs;
const skip = !isDisk && "needs linux, and temporary files on a disk";

/** A lane's user, which is never ours. */
const other = (process.getuid?.() ?? 0) + 1;

test("a run's own bytes and files are counted; hard links to others' files are not", () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-guard-"));
  try {
    const input = join(folder, "input");
    writeFileSync(input, Buffer.alloc(100_000));
    const run = join(folder, "run");
    mkdirSync(join(run, "root/deep"), { recursive: true });
    linkSync(input, join(run, "root/input"));
    const suspect = { folder: run, uid: other, writtenBytes: () => 0 };
    deepEqual({ ...ownWeight(suspect), bytes: 0 }, { files: 2, bytes: 0 }, "two folders");
    const before = ownWeight(suspect).bytes;
    writeFileSync(join(run, "root/deep/made"), Buffer.alloc(50_000));
    symlinkSync("/etc", join(run, "root/etc"));
    const { bytes, files } = ownWeight(suspect);
    equal(files, 4, "a link is one file, and its target is not looked at");
    ok(bytes - before >= 50_000 && bytes - before < 90_000, `${bytes - before}`);
    equal(
      fillerAmong([suspect], (one) => one),
      undefined,
      "too little to matter",
    );
    deepEqual(ownWeight({ folder: join(folder, "missing"), uid: other }), { bytes: 0, files: 0 });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a run's file counts once, whatever its number of links", () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-guard-"));
  try {
    const made = join(folder, "made");
    writeFileSync(made, Buffer.alloc(100_000));
    for (const name of ["again", "and-again"]) linkSync(made, join(folder, name));
    const shared = ownWeight({ folder, uid: undefined });
    ok(shared.files === 1 && shared.bytes >= 100_000 && shared.bytes < 200_000, JSON.stringify(shared));
    deepEqual(ownWeight({ folder, uid: process.getuid?.() }), shared, "its own user made it");
    deepEqual(ownWeight({ folder, uid: other }), { bytes: 0, files: 0 }, "another user's, like inputs");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("if no folder shows who fills the disk, it is the run that wrote the most", () => {
  const wrote = (bytes: number) => ({ folder: "/missing", uid: undefined, writtenBytes: () => bytes });
  const [some, most, few] = [wrote(100e6), wrote(200e6), wrote(1e6)];
  for (const what of ["bytes", "files"] as const) {
    equal(
      fillerAmong([some, most, few], (run) => run, what),
      most,
    );
    equal(
      fillerAmong([few], (run) => run, what),
      undefined,
      "too little to matter",
    );
  }
});

/** Each writes a hundred megabytes, and waits to be found. */
const fillers = {
  "has other names for its file": "head -c 100000000 /dev/zero > a; ln a b; ln a c; sleep 60",
  "has no name for its file": "exec 3> a; rm a; head -c 100000000 /dev/zero >&3; sleep 60",
  "closed its folder": "mkdir d; head -c 100000000 /dev/zero > d/a; chmod 0 d; sleep 60",
  "closed its folder but for the names": "mkdir d; head -c 100000000 /dev/zero > d/a; chmod 400 d; sleep 60",
};

for (const uidBase of process.getuid?.() === 0 ? [undefined, rigUidBase] : [undefined])
  describe(`a disk that runs full, ${uidBase === undefined ? "one user" : "users of their own"}`, { skip }, () => {
    for (const [what, script] of Object.entries(fillers))
      test(`is filled by one that ${what}: it is ended, and others are not`, async () => {
        await using rig = await SpawnerRig.open({ uidBase, freeBytesMin: freeBytes(tmpdir()) + 1e12 });
        const filler = await rig.start(["/bin/sh", "-c", script]);
        const neighbour = await rig.sh("sleep 2; echo fine");
        const { why } = await filler.end;
        const closed = join(filler.attempt, "work/d");
        if (existsSync(closed)) chmodSync(closed, 0o700); // so that it can be deleted
        equal(why, "disk-full");
        deepEqual([neighbour.end.why, neighbour.out], ["exited", "fine\n"]);
      });
  });

test("a disk is short of bytes below the reserve, or of files if it counts them", () => {
  equal(shortOf(tmpdir(), freeBytes(tmpdir()) + 1e12), "bytes");
  const { files, ffree } = statfsSync(tmpdir());
  const isShort = files > 0 && ffree < Math.min(10_000, files / 20);
  equal(shortOf(tmpdir(), 0), isShort ? "files" : undefined);
});
