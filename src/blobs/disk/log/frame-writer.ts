/** Rewrites a plain file as zstd frames. */
import { open } from "node:fs/promises";
import type { Core } from "#blobs/disk/core.ts";
import { framePlainBytes, frameTable, packFrame } from "./framed-file.ts";
import { readAt } from "#blobs/disk/read-file.ts";

/** Returns the size of the new file. */
export async function writeFramed(core: Core, from: string, to: string, sizeBytes: number): Promise<number> {
  await using source = await open(from, "r");
  await using target = await open(to, "w", 0o600);
  const plain = Buffer.allocUnsafeSlow(framePlainBytes);
  const lengths: number[] = [];
  let written = 0;
  for (let at = 0; at < sizeBytes; at += framePlainBytes) {
    const got = await readAt(core, source.fd, plain.subarray(0, Math.min(framePlainBytes, sizeBytes - at)), at);
    const frame = await packFrame(plain.subarray(0, got));
    await target.writeFile(frame);
    lengths.push(frame.length);
    written += frame.length;
  }
  const table = frameTable(lengths);
  await target.writeFile(table);
  return written + table.length;
}
