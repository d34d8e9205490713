/** What one cell of a job came to, as the kernel remembers it. */
import { z } from "zod";

export const CellResult = z.object({
  result: z.enum(["success", "failure", "cancelled"]),
  outputs: z.record(z.string(), z.string()),
  isFailureAllowed: z.boolean(),
});
export type CellResult = Readonly<z.infer<typeof CellResult>>;

/** Undefined for what no runner of ours wrote. */
export function readCellResult(payload: string): CellResult | undefined {
  try {
    return CellResult.safeParse(JSON.parse(payload)).data;
  } catch {
    return undefined;
  }
}
