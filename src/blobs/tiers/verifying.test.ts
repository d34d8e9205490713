import { ManualClock } from "#base/manual-clock.ts";
import { exerciseBlobs } from "#blobs/exercise.ts";
import { createMemoryBlobs } from "#blobs/memory.ts";
import { verifyingReads } from "./verifying.ts";

exerciseBlobs("a store whose reads are verified", async () => ({
  blobs: verifyingReads(createMemoryBlobs({ clock: new ManualClock(), sizeBytesMax: 4 * 1024 * 1024 })),
}));
