/** Exported runs as a table: a row for each job, for spreadsheets and warehouses. Pure. */
import type { z } from "zod";
import type { ExportedRun } from "./endpoints.ts";

const columns =
  "run repository workflow event ref sha actor run_conclusion created_at ended_at " +
  "job job_name job_conclusion attempts runner step_ms tests_passed tests_failed";

export const csvHead = (): string => columns.replaceAll(" ", ",");

export function csvRows({ run, tests }: z.output<typeof ExportedRun>): readonly string[] {
  const { repository, workflow, event, ref, sha, actor, conclusion = run.status, createdAt, endedAt = "" } = run;
  const ofRun = [run.run, repository, workflow, event, ref, sha, actor, conclusion, createdAt, endedAt];
  return run.jobs.map(({ job = "", name, steps, attempts, runner = "", ...one }) => {
    const own = tests.filter((report) => report.job === name);
    const stepMs = steps.reduce((sum, { tookMs = 0 }) => sum + tookMs, 0);
    const passed = own.reduce((sum, report) => sum + report.passed, 0);
    const failed = own.reduce((sum, report) => sum + report.failed, 0);
    const ofJob = [job, name, one.conclusion ?? one.status, attempts, runner, stepMs, passed, failed];
    return [...ofRun, ...ofJob].map((value) => field(value)).join(",");
  });
}

/** Quoted where it must be; a text that a spreadsheet would take for a formula is not one. */
function field(value: string | number): string {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
