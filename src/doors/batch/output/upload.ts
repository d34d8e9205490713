/** A file becomes an object of a bucket, in parts where it is large. */
import { open } from "node:fs/promises";
import type { S3Client } from "#blobs/tiers/s3/s3-client.ts";

const partBytesMin = 16 * 1024 * 1024;
const partsMax = 9_000;

export async function upload(
  client: S3Client,
  { from, bytes, key }: { readonly from: string; readonly bytes: number; readonly key: string },
  signal: AbortSignal,
): Promise<void> {
  await using file = await open(from, "r");
  const partBytes = Math.max(partBytesMin, Math.ceil(bytes / partsMax));
  const part = async (at: number): Promise<Buffer> => {
    signal.throwIfAborted();
    const buffer = Buffer.alloc(Math.min(partBytes, bytes - at));
    for (let read = 0; read < buffer.length;) {
      const { bytesRead } = await file.read(buffer, read, buffer.length - read, at + read);
      if (bytesRead === 0) throw new Error("the staged file became shorter");
      read += bytesRead;
    }
    return buffer;
  };
  if (bytes <= partBytes) {
    await client.put(key, await part(0));
    return;
  }
  const uploadId = await client.beginParts(key);
  try {
    const etags: string[] = [];
    for (let at = 0; at < bytes; at += partBytes)
      etags.push(await client.putPart(key, uploadId, etags.length + 1, await part(at)));
    await client.finishParts(key, uploadId, etags);
  } catch (error) {
    await client.abandonParts(key, uploadId).catch(() => {});
    throw error;
  }
}
