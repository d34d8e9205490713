import { exerciseIndex } from "./exercise-index.ts";
import { createMemoryIndex } from "./memory-index.ts";

exerciseIndex("the memory index", async () => ({ index: createMemoryIndex() }));
