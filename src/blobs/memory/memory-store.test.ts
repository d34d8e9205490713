import { deepEqual, equal, rejects } from "node:assert/strict";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { exerciseUploads } from "#blobs/testing/uploads.ts";
import { bytes, exerciseBlobs, put, text } from "#blobs/testing/exercise.ts";
import { createMemoryStore } from "./memory-store.ts";
import { createMemoryUploads } from "./memory-uploads.ts";
import { sha256Digest } from "#blobs/sha256.ts";

const store = () => createMemoryStore({ clock: new ManualClock(), sizeBytesMax: 16 * 1024 * 1024 });

exerciseBlobs("a tenant's view of the memory store", async () => ({ blobs: store().forTenant("mill").blobs }));
exerciseUploads("the memory store", async () => store().forTenant("mill"));

test("B5: a tenant can neither read nor probe a blob of another tenant until it uploads the bytes itself", async () => {
  const both = store();
  const [one, other] = [both.forTenant("one").blobs, both.forTenant("other").blobs];
  const digest = await put(one, "a secret");
  const hash = Buffer.from(digest.slice(0, 64), "hex");
  deepEqual(await other.missing([digest]), [digest]);
  deepEqual(await other.pin([digest], 5), { missing: [digest] });
  await rejects(text(other.read(digest)), (e) => isFault(e, "not-found"));
  equal(other.prompt?.has("sha256", hash, 0, 8), false);
  equal(other.prompt?.bytes(digest), undefined);
  equal(one.prompt?.has("sha256", hash, 0, 8), true);
  await put(other, "a secret");
  equal(await text(other.read(digest)), "a secret");
});

test("an upload that cannot fit is refused before its first byte", async () => {
  const { uploads } = store().forTenant("mill");
  const digest = `${"0".repeat(64)}/${17 * 1024 * 1024}`;
  await rejects(uploads.open({ uuid: "u", digest }, 0), (e) => isFault(e, "exhausted"));
});

test("an abandoned upload is forgotten after a while", async () => {
  const clock = new ManualClock();
  const { blobs } = store().forTenant("mill");
  const uploads = createMemoryUploads({ clock, storeBytes: 1_000, keptForMs: 1_000 })("mill", blobs);
  const key = { uuid: "u", digest: sha256Digest(bytes("half")) };
  const upload = await uploads.open(key, 0);
  await upload.append(bytes("ha"));
  await clock.advance(5_000);
  equal((await uploads.committed(key)).sizeBytes, 2, "its writer is still open");
  await upload.suspend();
  await clock.advance(999);
  equal((await uploads.committed(key)).sizeBytes, 2);
  await clock.advance(1);
  equal((await uploads.committed(key)).sizeBytes, 0);
});

test("one tenant's uploads in memory leave space for those of others", async () => {
  const all = createMemoryUploads({ clock: new ManualClock(), storeBytes: 1_000 });
  const { blobs } = store().forTenant("mill");
  const digest = `${"0".repeat(64)}/500`;
  const half = await all("greedy", blobs).open({ uuid: "1", digest }, 0);
  await half.append(Buffer.alloc(450));
  const more = await all("greedy", blobs).open({ uuid: "2", digest }, 0);
  await rejects(
    more.append(Buffer.alloc(51)),
    (e) => isFault(e, "exhausted") && e.facts["limit"] === "uploads-per-tenant",
  );
  const other = await all("other", blobs).open({ uuid: "1", digest }, 0);
  await other.append(Buffer.alloc(200));
  await half.suspend();
  equal((await all("greedy", blobs).committed({ uuid: "1", digest })).sizeBytes, 450);
  equal((await all("other", blobs).committed({ uuid: "2", digest })).sizeBytes, 0);
});
