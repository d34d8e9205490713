/** Segments as objects of a bucket. A rule of the bucket for `streams/` removes those that were never sealed. */
import { isFault } from "#base/fault.ts";
import { bytesOf } from "#blobs/tiers/s3/http-call.ts";
import type { S3Client } from "#blobs/tiers/s3/s3-client.ts";
import { segmentBytesMax, type Segments } from "./segments.ts";

const objectBytesMax = segmentBytesMax + 1024;

export function s3Segments({ client, prefix }: { readonly client: S3Client; readonly prefix: string }): Segments {
  const keyOf = (name: string): string => `${prefix}streams/${name}`;
  return {
    everyMs: 250,
    async put(name, bytes) {
      try {
        return (await client.put(keyOf(name), bytes, { ifNoneMatch: "*" })) === "conflict" ? "present" : "written";
      } catch (error) {
        // A server that knows no conditions: then an equal segment replaces the one that is there.
        if (!isFault(error, "internal") || error.facts["status"] !== 501) throw error;
        await client.put(keyOf(name), bytes);
        return "written";
      }
    },
    async replace(name, bytes) {
      await client.put(keyOf(name), bytes);
    },
    async get(name) {
      const found = await client.get(keyOf(name));
      return found && (await bytesOf(found.body, objectBytesMax));
    },
    remove: (name) => client.remove(keyOf(name)),
  };
}
