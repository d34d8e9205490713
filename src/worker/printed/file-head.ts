import { open } from "node:fs/promises";

/** The first `bytesMax` bytes of a file, or all of a shorter one. */
export async function fileHead(path: string, bytesMax: number): Promise<Buffer> {
  await using file = await open(path, "r");
  const { size } = await file.stat();
  const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(size, bytesMax)), { position: 0 });
  return buffer.subarray(0, bytesRead);
}
