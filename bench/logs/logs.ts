/** What streams of output cost: appended and durable, and how soon a reader has the bytes. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { openDiskStore } from "#blobs/disk/open.ts";
import type { Streams } from "#blobs/streams.ts";
import { littleClient, LittleS3 } from "#blobs/tiers/testing/little-s3.ts";
import { directorySegments } from "#blobs/tiers/streams/directory-segments.ts";
import { s3Segments } from "#blobs/tiers/streams/s3-segments.ts";
import { segmentStreams } from "#blobs/tiers/streams/segment-streams.ts";
import type { Segments } from "#blobs/tiers/streams/segments.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import type { Report } from "#bench/report.ts";
import type { Suite } from "#bench/suite.ts";

const MiB = 1024 * 1024;
const pieceBytes = MiB;
const line = Buffer.from(`${"0123456789abcdef".repeat(15)}\n`);

type Kind = { readonly name: string; readonly writer: Streams; readonly reader: Streams };

export const logs: Suite = {
  name: "logs",
  about: "output of tasks: MB/s appended and durable, CPU for each MB, time to a reader",
  notMeasured: ["a network between node and tier", "a real S3 server: the one here is a small stand-in"],
  async run(report, { smoke }) {
    const root = await mkdtemp(join(tmpdir(), "millrace-bench-logs-"));
    await using undo = new AsyncDisposableStack();
    undo.defer(() => rm(root, { recursive: true, force: true }));
    for (const kind of await kinds(root, undo)) {
      await appended(report, kind, smoke ? 4 : 100);
      await waited(report, kind, smoke ? 20 : 500);
    }
  },
};

async function kinds(root: string, undo: AsyncDisposableStack): Promise<readonly Kind[]> {
  const disk = await openDiskStore(join(root, "disk"), { clock, sizeBytesMax: 4096 * MiB, report: () => {} });
  undo.defer(() => disk.close());
  const s3 = undo.use(await LittleS3.start());
  const client = undo.use(littleClient(s3));
  await mkdir(join(root, "shared"));
  const over = (segments: Segments): Streams => {
    const blobs = createMemoryBlobs({ clock, sizeBytesMax: 256 * MiB });
    return segmentStreams({ segments, clock, blobsOf: () => blobs });
  };
  const shared = await directorySegments(join(root, "shared"));
  const bucket = s3Segments({ client, prefix: "bench/" });
  return [
    { name: "disk of one node", writer: disk.streams, reader: disk.streams },
    { name: "shared folder, read on another node", writer: over(shared), reader: over(shared) },
    { name: "bucket, read on another node", writer: over(bucket), reader: over(bucket) },
  ];
}

const keyOf = (task: string) => ({ tenant: "bench", task, token: 1, name: "output" });

async function appended(report: Report, { name, writer }: Kind, megabytes: number): Promise<void> {
  const piece = Buffer.alloc(pieceBytes, line);
  const key = keyOf("bulk");
  const [cpu, startMs] = [process.cpuUsage(), performance.now()];
  for (let i = 0; i < megabytes; i += 1) await writer.append(key, i * pieceBytes, piece);
  const tookS = (performance.now() - startMs) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  report.say(
    `${name}: ${(megabytes / tookS).toFixed(1)} MiB/s appended, ${((user + system) / 1_000 / megabytes).toFixed(2)} ms CPU for each MiB`,
  );
  await writer.remove(key);
}

/** A line every few milliseconds; from before its append to when a reader that follows has it. */
async function waited(report: Report, { name, writer, reader }: Kind, lines: number): Promise<void> {
  const key = keyOf("live");
  const leave = new AbortController();
  const sentMs: number[] = [];
  const waitsMs: number[] = [];
  const reading = (async () => {
    let seen = 0;
    for await (const part of reader.read(key, 0, leave.signal)) {
      seen += part.length;
      while (waitsMs.length < Math.floor(seen / line.length))
        waitsMs.push(performance.now() - (sentMs[waitsMs.length] ?? 0));
      if (waitsMs.length >= lines) return;
    }
  })();
  for (let i = 0; i < lines; i += 1) {
    sentMs.push(performance.now());
    await writer.append(key, i * line.length, line);
    await clock.sleep(5);
  }
  await reading;
  leave.abort();
  const sorted = waitsMs.toSorted((a, b) => a - b);
  const at = (share: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(1);
  report.say(`${name}: a reader has a line after ${at(0.5)} ms (p50), ${at(0.99)} ms (p99)`);
  await writer.remove(key);
}
