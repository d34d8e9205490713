/** The action index in a bucket. */
import { equal, ok, rejects } from "node:assert/strict";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { exerciseIndex } from "#blobs/testing/index.ts";
import { bytes } from "#blobs/testing/exercise.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { S3Client } from "./s3-client.ts";
import { checkConditions, s3Index } from "./s3-index.ts";
import { littleClient, LittleS3 } from "#blobs/tiers/testing/little-s3.ts";

exerciseIndex("the index in a bucket", async () => {
  const s3 = await LittleS3.start();
  const client = littleClient(s3);
  const dispose = async (): Promise<void> => {
    client[Symbol.dispose]();
    await s3[Symbol.asyncDispose]();
  };
  const open = () => s3Index({ client, prefix: "p/" });
  return { index: open(), reopened: async () => ({ index: open() }), dispose };
});

const key = { tenant: "mill", space: "ac", name: "x" };
const entry = { digest: digestOf(bytes("x")), principal: "ada", atMs: 1 };

test("B7: a write whose answer was lost is recognised as our own", async () => {
  await using s3 = await LittleS3.start();
  using client = littleClient(s3);
  const index = s3Index({ client, prefix: "" });
  let lost = 1;
  const losing: S3Client = {
    ...client,
    async put(...given) {
      const answer = await client.put(...given);
      return lost-- > 0 ? "conflict" : answer; // as the retry of a lost answer sees it
    },
  };
  const written = await s3Index({ client: losing, prefix: "" }).put(key, entry, 0);
  ok(written.kind === "written");
  equal((await index.get(key))?.version, written.version);
  equal((await index.put(key, entry, 0)).kind, "conflict");
});

test("a bucket that ignores conditions is refused for the action index", async () => {
  await using s3 = await LittleS3.start();
  using client = littleClient(s3);
  await checkConditions(client, "");
  equal(s3.objects.size, 0);
  const deaf: S3Client = { ...client, put: (object, body) => client.put(object, body) };
  await rejects(checkConditions(deaf, ""), (e) => isFault(e, "invalid") && /PostgreSQL/.test(e.message));
});
