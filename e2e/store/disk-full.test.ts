/** A disk that is really full: a small separate file system, which needs root. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { openDiskStore, type DiskStore } from "#blobs/disk/open.ts";
import { digestOf } from "#blobs/hashing.ts";

const MiB = 1024 * 1024;

/** A file system of this many bytes, or why there is none. */
function mountSmall(sizeBytes: number): { readonly path: string; unmount(): void } | string {
  const path = mkdtempSync(join(tmpdir(), "millrace-full-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${sizeBytes}`, "tmpfs", path], { stdio: "pipe" });
  } catch (error) {
    rmdirSync(path);
    return `needs a-small-mount: ${String(error).split("\n")[0]}`;
  }
  return {
    path,
    unmount() {
      execFileSync("umount", ["-l", path]);
      rmdirSync(path);
    },
  };
}

const probe = mountSmall(MiB);
const skip = typeof probe === "string" ? probe : false;
if (typeof probe !== "string") probe.unmount();

async function withFull(
  body: (store: DiskStore, clock: ManualClock, folder: string) => Promise<void>,
  options: { readonly sizeBytesMax: number },
): Promise<void> {
  const mount = mountSmall(48 * MiB);
  if (typeof mount === "string") throw new Error(mount);
  const clock = new ManualClock(10_000_000);
  const store = await openDiskStore(join(mount.path, "store"), { clock, promisedMs: 60_000, ...options });
  try {
    await body(store, clock, mount.path);
  } finally {
    await store.close();
    mount.unmount();
  }
}

async function put(store: DiskStore, seed: string, sizeBytes: number): Promise<Digest> {
  const bytes = Buffer.alloc(sizeBytes, `${seed} `);
  const digest = digestOf(bytes);
  await store.forTenant("mill").blobs.write(digest, bytes);
  return digest;
}

async function checkAll(store: DiskStore, digests: readonly Digest[]): Promise<void> {
  const { blobs } = store.forTenant("mill");
  deepEqual(await blobs.missing(digests), []);
  for (const digest of digests) {
    const parts: Uint8Array[] = [];
    for await (const part of blobs.read(digest)) parts.push(Uint8Array.from(part));
    equal(digestOf(Buffer.concat(parts)), digest);
  }
}

const isFull = (e: unknown): boolean => isFault(e, "exhausted") && Number(e.facts["retryAfterMs"]) > 0;

/** Writes until the store refuses; returns what it accepted. */
async function fillUp(store: DiskStore, seed: string, sizeBytes: number): Promise<readonly Digest[]> {
  const taken: Digest[] = [];
  for (let i = 0; ; i += 1) {
    try {
      taken.push(await put(store, `${seed} ${i}`, sizeBytes));
    } catch (error) {
      ok(isFull(error), String(error));
      return taken;
    }
    ok(i < 10_000, "a store on a small disk ends");
  }
}

for (const [how, sizeBytes] of [
  ["packed", 40_000],
  ["large", MiB],
] as const)
  test(`a store that is larger than its disk (${how} blobs) refuses, serves on and recovers`, { skip }, () =>
    withFull(
      async (store, clock) => {
        const taken = await fillUp(store, "first", sizeBytes);
        ok(taken.length * sizeBytes > 25 * MiB, `${taken.length} were taken`);
        await checkAll(store, taken);
        await clock.advance(120_000); // the promises have expired
        const more: Digest[] = [];
        for (let i = 0; i < 20; i += 1) more.push(await put(store, `second ${i}`, sizeBytes));
        await checkAll(store, more);
      },
      { sizeBytesMax: 1024 * MiB },
    ),
  );

test(
  "a disk that other programs fill: refuses, keeps serving, pins or refuses to, and recovers when they are gone",
  { skip },
  () =>
    withFull(
      async (store, clock, folder) => {
        const { blobs, uploads } = store.forTenant("mill");
        const small: Digest[] = [];
        for (let i = 0; i < 50; i += 1) small.push(await put(store, `small ${i}`, 10_000));
        const large = await put(store, "large", 2 * MiB);
        const upload = await uploads.open({ uuid: "u", digest: digestOf(Buffer.alloc(8 * MiB, "u")) }, 0);
        await upload.append(Buffer.alloc(MiB, "u"));
        await upload.suspend();
        const foreign = join(folder, "foreign");
        try {
          writeFileSync(foreign, Buffer.alloc(64 * MiB));
        } catch (error) {
          equal((error as NodeJS.ErrnoException).code, "ENOSPC");
        }
        await rejects(fillUpTo(store, 100), isFull);
        await rejects(put(store, "too large", 3 * MiB), isFull);
        await checkAll(store, [...small, large]);
        equal((await uploads.committed({ uuid: "u", digest: digestOf(Buffer.alloc(8 * MiB, "u")) })).sizeBytes, MiB);
        rmSync(foreign);
        const again = await put(store, "again", 3 * MiB);
        await checkAll(store, [...small, large, again]);
        const pin = await blobs.pin([...small, large], 1_000);
        ok("pinnedForMs" in pin);
        const rest = await uploads.open({ uuid: "u", digest: digestOf(Buffer.alloc(8 * MiB, "u")) }, MiB);
        await rest.append(Buffer.alloc(7 * MiB, "u"));
        await rest.finish();
        await clock.advance(10);
      },
      { sizeBytesMax: 40 * MiB },
    ),
);

const fillUpTo = async (store: DiskStore, count: number): Promise<void> => {
  for (let i = 0; i < count; i += 1) await put(store, `full ${i}`, 60_000);
};

test("a write that a full disk refused leaves nothing behind that would break a restart", { skip }, async () => {
  const mount = mountSmall(24 * MiB);
  if (typeof mount === "string") throw new Error(mount);
  const clock = new ManualClock(10_000_000);
  const open = (): Promise<DiskStore> =>
    openDiskStore(join(mount.path, "store"), { clock, sizeBytesMax: 512 * MiB, promisedMs: 60_000 });
  try {
    let store = await open();
    const taken = [...(await fillUp(store, "one", 30_000))];
    await store.close();
    store = await open();
    await checkAll(store, taken);
    await clock.advance(120_000);
    const more = await put(store, "more", 30_000);
    await store.close();
    store = await open();
    await checkAll(store, [more]);
    await store.close();
  } finally {
    mount.unmount();
  }
});
