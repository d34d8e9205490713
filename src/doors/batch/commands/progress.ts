/** A query's progress as one line. It says how long something takes only where tasks like it have been timed. */
import type { QueryView } from "#doors/batch/endpoints.ts";

const barWidth = 20;

export function progressText({ plan, stages, tasks, done, foreseen }: QueryView): string {
  if (plan === undefined) return "planning";
  const live = stages.filter(({ planned, tasks: ended }) => planned > ended);
  const [now] = live;
  if (!now) return stages.length === 0 ? "planned" : `${stageCount(stages.length, foreseen)} done`;
  const left = live.map(({ leftMs }) => leftMs);
  const parts = [
    stageCount(stages.length, foreseen),
    `${now.tasks} of ${now.planned} ${now.planned === 1 ? "task" : "tasks"}`,
    ...(now.running > 0 ? [`${now.running} running`] : []),
    ...(left.every((one) => one !== undefined) ? [`about ${timeText(Math.max(...left))} more for it`] : []),
  ];
  return `[${bar(now.tasks / now.planned)}] ${parts.join(", ")}${tasks > now.planned ? ` (${done} tasks done in all)` : ""}`;
}

/** What is foreseen is a guess, and worth nothing once there are more. */
const stageCount = (known: number, foreseen: number | undefined): string =>
  foreseen !== undefined && foreseen > known ? `stage ${known} of about ${foreseen}` : `stage ${known}`;

function bar(share: number): string {
  const full = Math.min(barWidth, Math.floor(share * barWidth));
  return "#".repeat(full) + "-".repeat(barWidth - full);
}

function timeText(ms: number): string {
  const seconds = Math.max(1, Math.round(ms / 1_000));
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}
