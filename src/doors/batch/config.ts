import { z } from "zod";
import { Size } from "#base/config-words.ts";

export const BatchConfig = z.strictObject({
  packsMax: Size({ min: "64MiB" })
    .prefault("20GiB")
    .describe(
      "How much of what tasks hand on is kept as files, and how much one task may write while memory is short.",
    ),
  taskMemory: Size({ min: "64MiB" })
    .optional()
    .describe(
      "Memory of one task before it ran out of any. Left out: an equal share of three fifths of the machine's.",
    ),
});
export type BatchConfig = z.output<typeof BatchConfig>;
