/** Fields that several calls about runs share. */
import { z } from "zod";

export const RunId = z.string().max(50).describe("The run's id, such as j0-1.");
export const runParams = z.object({ run: RunId });
export const jobParams = z.object({
  run: RunId,
  job: z.string().min(1).max(200).describe("The job's id in the run, or its name in the file where it has one cell."),
});
export const Status = z.enum(["waiting", "queued", "in_progress", "completed"]);
export const RunStatus = z
  .enum([...Status.options, "needs_decision"])
  .describe("waiting: for an approval. needs_decision: it waits until a person has decided about an effect.");
export const decisions = z
  .array(z.string())
  .optional()
  .describe("Keys of the effects that wait for a person: millrace effect decide KEY.");
export const Conclusion = z.enum(["success", "failure", "cancelled", "skipped"]);
