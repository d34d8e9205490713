/** What a process left in the file that it printed to: whole where it fits into memory, else its end. */
import { open, readFile, stat } from "node:fs/promises";
import { wholeBytesMax, type KeptOutput } from "#worker/process.ts";

const tailBytes = 64 * 1024;

/** `leftOutBytes` were printed and are not in the file. */
export async function keptOutput(path: string, leftOutBytes: number): Promise<KeptOutput> {
  const { size } = await stat(path);
  const isShort = size <= wholeBytesMax;
  const bytes = isShort ? await readFile(path) : await fileTail(path, size);
  return {
    whole: isShort ? bytes : undefined,
    totalBytes: size + leftOutBytes,
    tail: (lengthMax) => new TextDecoder().decode(bytes.subarray(-lengthMax * 4)).slice(-lengthMax),
  };
}

async function fileTail(path: string, sizeBytes: number): Promise<Buffer> {
  await using file = await open(path, "r");
  const { buffer, bytesRead } = await file.read(Buffer.alloc(tailBytes), 0, tailBytes, sizeBytes - tailBytes);
  return buffer.subarray(0, bytesRead);
}
