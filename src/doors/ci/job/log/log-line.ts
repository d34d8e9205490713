/**
 * The log of a job: a text of lines, each with its time, its step and its kind, so that people can read it as it is
 * and programs can take it apart. Pure.
 *
 *     2026-11-18T07:16:39.123Z 3 | hello
 */
import type { LineLevel, Report } from "#doors/ci/run/report.ts";

const signs = {
  plain: "|",
  command: "$",
  debug: "d",
  notice: "n",
  warning: "w",
  error: "e",
  group: ">",
  "group-ended": "<",
  started: "+",
  ended: "=",
  skipped: "-",
  summary: "#",
} as const;

export type LineKind = keyof typeof signs;

export type LogLine = {
  readonly at: string;
  /** Undefined for what belongs to the job itself. */
  readonly step?: number;
  readonly kind: LineKind;
  readonly text: string;
};

const kindsBySign = new Map(Object.entries(signs).map(([kind, sign]) => [sign as string, kind as LineKind]));

export function formatLine({ at, step, kind, text }: LogLine): string {
  return `${at} ${step ?? "*"} ${signs[kind]} ${text.replaceAll("\n", " ")}\n`;
}

/** Undefined for a text that is no line of a log. */
export function parseLine(text: string): LogLine | undefined {
  const [, at, step, sign, rest] = /^(\S+) (\d+|\*) (\S) (.*)$/s.exec(text) ?? [];
  const kind = kindsBySign.get(sign ?? "");
  if (at === undefined || step === undefined || rest === undefined || !kind) return undefined;
  return { at, kind, text: rest, ...(step !== "*" && { step: Number(step) }) };
}

/** What of a report belongs into the log. */
export function linesOf(report: Report, at: string): readonly LogLine[] {
  if (report.kind === "job-note") return [{ at, kind: kindOf(report.level), text: report.text }];
  const step = report.step.number;
  const line = (kind: LineKind, text: string): LogLine => ({ at, step, kind, text });
  switch (report.kind) {
    case "step-started":
      return [line("started", report.step.name)];
    case "step-skipped":
      return [line("skipped", `${report.step.name} (if: ${report.why})`)];
    case "line":
      return report.text.split("\n").map((text) => line(kindOf(report.level), text));
    case "group":
      return [line("group", report.title)];
    case "group-ended":
      return [line("group-ended", "")];
    case "summary":
      return report.text
        .trimEnd()
        .split("\n")
        .map((text) => line("summary", text));
    case "step-ended": {
      const { outcome, conclusion, tookMs } = report;
      const allowed = outcome === conclusion ? "" : ` (${outcome}, and the job goes on)`;
      return [line("ended", `${conclusion}${allowed} ${Math.round(tookMs)} ms`)];
    }
    default:
      return []; // annotations are lines as well
  }
}

const kindOf = (level: LineLevel): LineKind => level;
