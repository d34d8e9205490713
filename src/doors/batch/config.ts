import { z } from "zod";
import { Grants } from "./grants/grant-config.ts";
import { Size } from "#base/config-words.ts";

export const BatchConfig = z.strictObject({
  inputs: Grants.describe(
    "What jobs of tenants may read and write, the same on all nodes. Operators may read whatever the node can.",
  ),
  packsMax: Size({ min: "64MiB" })
    .prefault("20GiB")
    .describe(
      "How much of what tasks hand on is kept as files, and how much one task may write while memory is short.",
    ),
  recognise: z
    .enum(["place", "content"])
    .default("place")
    .describe(
      "How a file is recognised when results of earlier queries are looked for: by its place on disk, size and " +
        "times, or by its bytes, which are all read once.",
    ),
  taskMemory: Size({ min: "64MiB" })
    .optional()
    .describe(
      "Memory of one task before it ran out of any. Left out: an equal share of three fifths of the machine's.",
    ),
});
export type BatchConfig = z.output<typeof BatchConfig>;
