/** A run in a terminal: lines of all jobs as they come, each with its job's name, and what became of them. */
import type { JobResult } from "#doors/ci/workflow/plan/job-plan.ts";
import type { LineLevel, Report } from "#doors/ci/run/report.ts";
import type { JobRef, RunReport } from "./run.ts";

export type ViewPorts = {
  readonly out: (line: string) => void;
  /** Drawn over at the bottom of a terminal. */
  readonly progress: (line: string) => void;
  readonly isColoured: boolean;
  /** Only how steps and jobs end, and what went wrong. */
  readonly isQuiet: boolean;
};

const signs: Readonly<Record<JobResult, string>> = { success: "✔", failure: "✖", cancelled: "■", skipped: "-" };
const colours: Readonly<Record<JobResult, number>> = { success: 32, failure: 31, cancelled: 33, skipped: 90 };
const jobColours = [36, 35, 34, 33, 32, 96, 95, 94];
const levelColours: Readonly<Partial<Record<LineLevel, number>>> = {
  error: 31,
  warning: 33,
  notice: 36,
  debug: 90,
  command: 90,
};
const levelWords: Readonly<Partial<Record<LineLevel, string>>> = {
  error: "error: ",
  warning: "warning: ",
  notice: "notice: ",
  debug: "debug: ",
};

type Ended = { readonly job: JobRef; readonly result: JobResult; readonly tookMs: number; readonly why?: string };

export class RunView {
  readonly #ports: ViewPorts;
  readonly #jobs = new Map<string, { readonly job: JobRef; readonly colour: number; step: string }>();
  readonly #ended: Ended[] = [];
  #groups = new Map<string, number>();

  constructor(ports: ViewPorts) {
    this.#ports = ports;
  }

  show(report: RunReport): void {
    switch (report.kind) {
      case "job-started":
        this.#jobs.set(report.job.key, {
          job: report.job,
          colour: jobColours[this.#jobs.size % jobColours.length] ?? 36,
          step: "",
        });
        this.#line(report.job, "started", 1);
        break;
      case "job-skipped":
        this.#ended.push({ ...report, result: "skipped", tookMs: 0 });
        this.#line(report.job, `- skipped: ${report.why}`, 90);
        break;
      case "job-ended":
        this.#ended.push(report);
        this.#line(
          report.job,
          `${signs[report.result]} ${report.result} in ${duration(report.tookMs)}`,
          colours[report.result],
        );
        this.#jobs.delete(report.job.key);
        break;
      default:
        this.#job(report.job, report.report);
    }
    this.#progress();
  }

  end(result: JobResult): void {
    this.#ports.progress("");
    if (this.#ended.length > 1)
      for (const { job, result: one, tookMs, why } of this.#ended) {
        const detail = one === "skipped" ? (why ?? "") : duration(tookMs);
        this.#ports.out(this.#coloured(`${signs[one]} ${job.name}  ${detail}`, colours[one]));
      }
    this.#ports.out(this.#coloured(`${signs[result]} run: ${result}`, colours[result]));
  }

  #job(job: JobRef, report: Report): void {
    switch (report.kind) {
      case "step-started": {
        const running = this.#jobs.get(job.key);
        if (running) running.step = report.step.name;
        if (!this.#ports.isQuiet) this.#line(job, `${indent(report.step.depth)}▶ ${report.step.name}`, 1);
        return;
      }
      case "step-ended": {
        const { step, outcome, conclusion, tookMs } = report;
        const allowed = outcome === conclusion ? "" : ` (${outcome}, and the job goes on)`;
        this.#line(
          job,
          `${indent(step.depth)}${signs[conclusion]} ${step.name} ${duration(tookMs)}${allowed}`,
          colours[conclusion],
        );
        return;
      }
      case "step-skipped":
        if (report.step.depth > 0) return; // an action's own choice
        this.#line(job, `${indent(report.step.depth)}- ${report.step.name} (if: ${report.why})`, 90);
        return;
      case "line":
        if (report.level === "command" && report.text === report.step.name) return; // said when it started
        if (!this.#ports.isQuiet || report.level === "error")
          this.#text(job, report.step.depth, report.level, report.text);
        return;
      case "group":
        this.#groups.set(job.key, (this.#groups.get(job.key) ?? 0) + 1);
        if (!this.#ports.isQuiet) this.#line(job, `  ┌ ${report.title}`, 1);
        return;
      case "group-ended":
        this.#groups.set(job.key, Math.max(0, (this.#groups.get(job.key) ?? 0) - 1));
        return;
      case "summary":
        if (!this.#ports.isQuiet)
          for (const line of report.text.trimEnd().split("\n")) this.#line(job, `  ║ ${line}`, 0);
        return;
      case "job-note":
        this.#text(job, 0, report.level, report.text);
        return;
      default: // annotations are lines as well
    }
  }

  #text(job: JobRef, depth: number, level: LineLevel, text: string): void {
    const inGroup = "  ".repeat(this.#groups.get(job.key) ?? 0);
    const prefix = `${indent(depth)}  ${inGroup}${levelWords[level] ?? ""}`;
    this.#line(job, `${prefix}${text}`, levelColours[level] ?? 0);
  }

  #line(job: JobRef, text: string, colour: number): void {
    const own = this.#jobs.get(job.key)?.colour ?? 36;
    this.#ports.out(`${this.#coloured(`[${job.name}]`, own)} ${this.#coloured(text, colour)}`);
  }

  #progress(): void {
    const running = [...this.#jobs.values()].map(({ job, step }) => (step === "" ? job.name : `${job.name}: ${step}`));
    this.#ports.progress(running.length === 0 ? "" : `${running.length} running: ${running.join(" | ")}`);
  }

  #coloured(text: string, colour: number): string {
    return this.#ports.isColoured && colour > 0 ? `\u001b[${colour}m${text}\u001b[0m` : text;
  }
}

const indent = (depth: number): string => "  ".repeat(depth);

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)}s`;
  return `${Math.floor(ms / 60_000)}m ${Math.round((ms % 60_000) / 1000)}s`;
}
