/** Names in a bucket. */
import { equal, ok, rejects } from "node:assert/strict";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { Random } from "#base/random.ts";
import { exerciseIndex } from "#blobs/testing/index.ts";
import { bytes } from "#blobs/testing/exercise.ts";
import { digestOf } from "#blobs/hashing.ts";
import { realClock } from "#testing/real-clock.ts";
import { createS3Client, type S3Client } from "./s3-client.ts";
import { checkConditions, s3Index } from "./s3-index.ts";
import { LittleS3, littleCredentials } from "#blobs/tiers/testing/little-s3.ts";

const clientOf = (s3: LittleS3): S3Client =>
  createS3Client({
    clock: realClock,
    random: new Random(1),
    endpoint: s3.endpoint,
    region: "here",
    bucket: "mill",
    credentials: littleCredentials,
    retry: { attemptsMax: 3, delayMs: 1, delayMsMax: 4 },
  });

exerciseIndex("the index in a bucket", async () => {
  const s3 = await LittleS3.start();
  const client = clientOf(s3);
  const dispose = async (): Promise<void> => {
    client[Symbol.dispose]();
    await s3[Symbol.asyncDispose]();
  };
  const open = () => s3Index({ client, prefix: "p/" });
  return { index: open(), reopened: async () => ({ index: open() }), dispose };
});

const key = { tenant: "mill", space: "ac", name: "x" };
const entry = { digest: digestOf(bytes("x")), principal: "ada", atMs: 1 };

test("B7: a write whose answer was lost is known for our own", async () => {
  await using s3 = await LittleS3.start();
  using client = clientOf(s3);
  const index = s3Index({ client, prefix: "" });
  let lost = 1;
  const losing: S3Client = {
    ...client,
    async put(...given) {
      const answer = await client.put(...given);
      return lost-- > 0 ? "conflict" : answer; // as a second attempt hears it
    },
  };
  const written = await s3Index({ client: losing, prefix: "" }).put(key, entry, 0);
  ok(written.kind === "written");
  equal((await index.get(key))?.version, written.version);
  equal((await index.put(key, entry, 0)).kind, "conflict");
});

test("a bucket that does not honour conditions is no place for names", async () => {
  await using s3 = await LittleS3.start();
  using client = clientOf(s3);
  await checkConditions(client, "");
  equal(s3.objects.size, 0);
  const deaf: S3Client = { ...client, put: (object, body) => client.put(object, body) };
  await rejects(checkConditions(deaf, ""), (e) => isFault(e, "invalid") && /PostgreSQL/.test(e.message));
});
