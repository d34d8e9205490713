/**
 * The process that is killed: stores one thing after the other, several at once, and prints each as soon as it was
 * acknowledged, and not before.
 */
import { writeSync } from "node:fs";
import { systemClock } from "#door/system-clock.ts";
import { openDiskStore, type DiskStore } from "#blobs/disk/open.ts";
import { isFault } from "#base/fault.ts";
import { keyOf, tenant, thing, uploadKey, type Thing } from "./things.ts";

export type WriterSettings = {
  readonly root: string;
  readonly from: number;
  readonly lanes: number;
  readonly sizeBytesMax: number;
  readonly promisedMs: number;
  readonly compression: "none" | "zstd";
};

const pinMs = 3_600_000;

async function store(to: DiskStore, one: Thing): Promise<void> {
  const { blobs, uploads } = to.forTenant(tenant);
  switch (one.kind) {
    case "upload": {
      const { sizeBytes } = await uploads.committed(uploadKey(one));
      const upload = await uploads.open(uploadKey(one), sizeBytes);
      for (let at = sizeBytes; at < one.bytes.length; at += 30_000)
        await upload.append(one.bytes.subarray(at, at + 30_000));
      if (one.number % 3 === 0) {
        await upload.suspend();
        say("part", one.number, (await uploads.committed(uploadKey(one))).sizeBytes);
        return;
      }
      return await upload.finish();
    }
    case "name":
      await blobs.write(one.digest, one.bytes);
      await to.index.put(keyOf(one.number), { digest: one.digest, principal: "writer", atMs: one.number });
      return;
    case "pinned": {
      await blobs.write(one.digest, one.bytes);
      const pin = await blobs.pin([one.digest], pinMs);
      if ("missing" in pin) throw new Error(`written and not there to be pinned: ${one.number}`);
      return;
    }
    default:
      await blobs.write(one.digest, one.bytes);
  }
}

/** At once, whatever happens to this process next. */
function say(...words: readonly (string | number)[]): void {
  for (const line = `${words.join(" ")}\n`; ;) {
    try {
      return void writeSync(1, line);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error; // the reader is slow
    }
  }
}

async function main(): Promise<void> {
  const { root, from, lanes, ...options } = JSON.parse(process.argv[2] ?? "{}") as WriterSettings;
  const opened = await openDiskStore(root, { clock: systemClock, ...options, memoryBytesMax: 8 * 1024 * 1024 });
  say("open");
  let next = from;
  const lane = async (): Promise<void> => {
    for (;;) {
      const one = thing(next++);
      try {
        await store(opened, one);
        say("stored", one.number);
      } catch (error) {
        if (!isFault(error, "exhausted")) throw error;
        say("refused", one.number);
        await systemClock.sleep(20);
      }
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

if (import.meta.main) await main();
