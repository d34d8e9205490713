/** What a job said about itself besides its log: annotations, summaries, and the conditions of what it skipped. */
import { z } from "zod";
import type { ConditionPart } from "#doors/ci/workflow/expression/explain.ts";

export const Condition: z.ZodType<ConditionPart> = z.lazy(() =>
  z.object({
    expression: z.string(),
    value: z.string().optional().describe("As JSON; absent for what was not evaluated."),
    error: z.string().optional(),
    note: z.string().optional(),
    parts: z.array(Condition).readonly().optional(),
  }),
) as z.ZodType<ConditionPart>;

const step = z.int().min(0);
const place = z.int().min(0).optional();

export const Annotation = z.object({
  step,
  level: z.enum(["notice", "warning", "error"]),
  message: z.string(),
  title: z.string().optional(),
  file: z.string().optional(),
  line: place,
  endLine: place,
  column: place,
  endColumn: place,
  code: z.string().optional(),
});

export const Summary = z.object({ step, text: z.string().describe("Markdown, masked.") });

export const Actions = z
  .record(z.string(), z.string())
  .describe("The commit that each `owner/repo@ref` of the job was, for actions that came from a repository.");

export const JobDetails = z.object({
  annotations: z.array(Annotation),
  summaries: z.array(Summary),
  conditions: z.array(z.object({ step, condition: Condition })),
  actions: Actions.optional(),
});
export type JobDetails = z.output<typeof JobDetails>;

/** One line of the file in which a job leaves them. */
export const DetailLine = z.union([
  z.object({ annotation: Annotation }),
  z.object({ summary: Summary }),
  z.object({ condition: z.object({ step, condition: Condition }) }),
]);
export type DetailLine = z.output<typeof DetailLine>;

export const noDetails: JobDetails = { annotations: [], summaries: [], conditions: [] };
