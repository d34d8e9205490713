/** What one cell of a job came to, as the kernel remembers it. */
import { z } from "zod";

const Ended = z.enum(["success", "failure", "cancelled", "skipped"]);

const StepLine = z.object({
  number: z.int(),
  name: z.string(),
  conclusion: Ended,
  /** When it began, in milliseconds since 1970, and how long it took. */
  atMs: z.number(),
  tookMs: z.number(),
});
export type StepLine = Readonly<z.infer<typeof StepLine>>;

export const CellResult = z.object({
  /** Processor time of the attempt. It stands first, where usage is counted from. */
  cpuMs: z.number().optional(),
  result: z.enum(["success", "failure", "cancelled"]),
  outputs: z.record(z.string(), z.string()),
  /** Outputs that are too long to stand here are a blob: then `outputs` is empty. */
  outputsBlob: z.string().optional(),
  isFailureAllowed: z.boolean(),
  /** Where what it deployed can be seen. */
  environmentUrl: z.string().optional(),
  /** The digest of its log, and the claim under which it was written. */
  log: z.string().optional(),
  token: z.int().optional(),
  steps: z.array(StepLine).optional(),
  /** The digest of its annotations, summaries and conditions; absent: it had none. */
  details: z.string().optional(),
  /** The digest of what its steps kept, so that it can be run again from one of them. */
  kept: z.string().optional(),
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

/** Of a result as it is written, without reading all of it: names and texts of jobs stand behind. */
export function cpuMsIn(payload: string): number | undefined {
  const [, digits] = /^\{"cpuMs":(\d{1,12})[,}]/.exec(payload) ?? [];
  return digits === undefined ? undefined : Number(digits);
}
