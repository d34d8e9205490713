import { ManualClock } from "#base/testing/manual-clock.ts";
import { exerciseBlobs } from "#blobs/testing/exercise.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { verifyingReads } from "./verifying.ts";

exerciseBlobs("a store whose reads are verified", async () => ({
  blobs: verifyingReads(createMemoryBlobs({ clock: new ManualClock(), sizeBytesMax: 4 * 1024 * 1024 })),
}));
