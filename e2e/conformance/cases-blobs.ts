/** Items 29 to 36: FindMissingBlobs, batches, trees, chunks. */
import { deepEqual, equal } from "node:assert/strict";
import { type Digest } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { at, type Case } from "./case.ts";
import { batchCases } from "./cases-batch.ts";
import { chunkCases } from "./cases-chunks.ts";
import { treeCases } from "./cases-tree.ts";
import { code, codeOf, digestOf, ends, fresh, missing, nothing, readAll, readName, upload } from "./lab.ts";

const byHash = (one: Digest, other: Digest): number => (one.hash < other.hash ? -1 : 1);

export const blobCases: readonly Case[] = [
  at(29, "missing is told once, whatever is asked twice; to ask nothing is fine", async (lab) => {
    deepEqual(await missing(lab, []), []);
    const here = await upload(lab, fresh());
    const gone = digestOf(fresh());
    deepEqual(await missing(lab, [gone, here, gone, here, nothing, gone]), [gone]);
  }),
  at(29, "one that is no digest makes the whole call invalid", async (lab) => {
    await ends(missing(lab, [digestOf(fresh()), { hash: "abc", sizeBytes: 3 }]), code.invalid, "FindMissingBlobs");
  }),
  at(29, "ten thousand are answered in one call", async (lab) => {
    const gone = Array.from({ length: 10_000 }, () => digestOf(fresh(20)));
    const here = await upload(lab, fresh());
    deepEqual([...(await missing(lab, [...gone, here]))].toSorted(byHash), gone.toSorted(byHash));
  }),
  at(30, "what is said to be there can be read, what is said to be missing cannot", async (lab) => {
    const blobs = Array.from({ length: 40 }, (_, i) => fresh(1 + i * 997));
    for (const bytes of blobs.slice(0, 20)) await upload(lab, bytes);
    const gone = new Set(
      (
        await missing(
          lab,
          blobs.map((bytes) => digestOf(bytes)),
        )
      ).map(({ hash }) => hash),
    );
    for (const bytes of blobs) {
      const digest = digestOf(bytes);
      const ended = await codeOf(readAll(lab, readName(lab, digest)));
      equal(ended, gone.has(digest.hash) ? code.notFound : 0);
    }
    equal(gone.size, 20);
  }),
  ...batchCases,
  ...treeCases,
  ...chunkCases,
];
