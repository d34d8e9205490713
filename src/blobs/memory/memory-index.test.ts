import { exerciseIndex } from "#blobs/testing/index.ts";
import { createMemoryIndex } from "./memory-index.ts";

exerciseIndex("the memory index", async () => ({ index: createMemoryIndex() }));
