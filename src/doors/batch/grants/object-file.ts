/** Writes an object to a file, or as much of it as a plan needs: of Parquet, its footer. */
import type { FileHandle } from "node:fs/promises";
import { Fault } from "#base/fault.ts";
import type { S3Client } from "#blobs/tiers/s3/s3-client.ts";
import { isFault } from "#base/fault.ts";
import type { SourceFile } from "#doors/batch/plan/source.ts";
import type { Need } from "./source-files.ts";

export type ObjectPorts = {
  readonly client: S3Client;
  readonly handle: FileHandle;
  readonly need: Need;
  readonly signal: AbortSignal;
};

const footerMin = 8;
const wholeBytesMax = 1024 * 1024;
const triesMax = 5;

export async function writeObject(file: SourceFile, ports: ObjectPorts): Promise<void> {
  const { bytes, path } = file;
  if (ports.need === "task" || bytes <= wholeBytesMax || !/\.(parquet|parq)$/i.test(path))
    return await copy(file, 0, ports);
  // The rest is a hole: no task reads it: a task gets the whole object.
  await ports.handle.truncate(bytes);
  await ports.handle.write("PAR1", 0);
  await copy(file, bytes - footerMin, ports);
  const end = Buffer.alloc(footerMin);
  await ports.handle.read(end, 0, footerMin, bytes - footerMin);
  const footer = end.readUInt32LE(0);
  if (end.toString("latin1", 4) !== "PAR1" || footer > bytes - 12) return; // the engine will say so
  await copy(file, bytes - footerMin - footer, ports);
}

/** From there to the end. An answer that breaks off goes on where it stopped. */
async function copy({ path, bytes, object }: SourceFile, from: number, ports: ObjectPorts): Promise<void> {
  let at = from;
  for (let tries = 1; at < bytes || tries === 1; tries += 1) {
    ports.signal.throwIfAborted();
    const before = at;
    const found = bytes === 0 ? undefined : await ports.client.get(object?.key ?? "", at);
    if (bytes === 0) return;
    if (!found || found.etag !== object?.etag)
      throw new Fault("stale", "read source", { path, why: "it was changed or removed after the job began" });
    try {
      for await (const part of found.body) {
        ports.signal.throwIfAborted();
        if (at + part.length > bytes)
          throw new Fault("stale", "read source", { path, why: "it is longer than it was" });
        await ports.handle.write(part, 0, part.length, at);
        at += part.length;
      }
    } catch (error) {
      if (!isFault(error, "unavailable") || tries >= triesMax) throw error;
    }
    if (at < bytes && at === before && tries >= triesMax)
      throw new Fault("unavailable", "read source", { path, why: "its server stops in the middle" });
  }
}
