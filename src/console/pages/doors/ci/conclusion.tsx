/** How a run, a job or a step stands, in a word and a colour. */
import type { Standing } from "./shapes.ts";

const colours: Readonly<Record<string, string>> = {
  success: "good",
  failure: "bad",
  cancelled: "quiet",
  skipped: "quiet",
  in_progress: "busy",
  needs_decision: "bad",
  waiting: "busy",
};

export const wordOf = ({ status, conclusion }: Standing): string => conclusion ?? status.replace("_", " ");

export const Conclusion = (standing: Standing) => (
  <span class={`phase ${colours[standing.conclusion ?? standing.status] ?? ""}`}>{wordOf(standing)}</span>
);
