/** What a benchmark prints, what it writes for machines, and how it ends. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";

export type Figure = number | string;

/** A target for a figure. If the figure is missing the target is not shown as kept. */
export type Target = {
  readonly what: string;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly got: number | undefined;
  /** Why there is no figure. */
  readonly missing?: string;
};

export const exitCodes = { done: 0, missed: 1, wrongUse: 2, notShown: 3 } as const;

type Table = {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Figure[])[];
};

export class Report {
  readonly name: string;
  readonly #figures = new Map<string, Figure>();
  readonly #targets: Target[] = [];
  readonly #tables: Table[] = [];
  readonly #startedMono = performance.now();
  readonly #startedTicks = cpuTicks();

  constructor(name: string) {
    this.name = name;
  }

  table(title: string, columns: readonly string[], rows: readonly (readonly Figure[])[]): void {
    this.#tables.push({ title, columns, rows });
    console.log(`\n${title}\n${render(columns, rows)}`);
  }

  get elapsedMs(): number {
    return performance.now() - this.#startedMono;
  }

  say(text: string): void {
    console.log(text);
  }

  /** One of the numbers on the last line. */
  figure(key: string, value: number): void {
    this.#figures.set(key, rounded(value));
  }

  target(target: Target): void {
    this.#targets.push(target);
  }

  /** Prints the rest and returns the exit code. */
  end(options: {
    readonly check: boolean;
    readonly json: string | undefined;
    readonly notMeasured: readonly string[];
  }) {
    const missed = this.#targets.filter((target) => verdictOf(target) === "MISSED").length;
    const notShown = this.#targets.filter((target) => verdictOf(target) === "not shown").length;
    if (this.#targets.length > 0) this.table("Targets", ["target", "wanted", "got", ""], this.#targets.map(lineOf));
    console.log(`\nNot measured here:\n${options.notMeasured.map((line) => `  - ${line}`).join("\n")}`);
    const machine = machineDuring(this.#startedTicks);
    console.log(`\n${describeMachine(machine)}`);
    this.figure("seconds", this.elapsedMs / 1_000);
    if (this.#targets.length > 0) {
      this.figure("missed", missed);
      this.figure("not_shown", notShown);
    }
    if (options.json !== undefined) writeFileSync(options.json, this.#json(machine));
    console.log(`bench ${this.name}: ${[...this.#figures].map(([key, value]) => `${key}=${value}`).join(" ")}`);
    if (!options.check) return exitCodes.done;
    return missed > 0 ? exitCodes.missed : notShown > 0 ? exitCodes.notShown : exitCodes.done;
  }

  #json(machine: Machine): string {
    const targets = this.#targets.map((target) => ({ ...target, verdict: verdictOf(target) }));
    const facts = { bench: this.name, commit: commit(), node: process.version, machine };
    return `${JSON.stringify({ ...facts, figures: Object.fromEntries(this.#figures), targets, tables: this.#tables }, undefined, 1)}\n`;
  }
}

function verdictOf({ got, atLeast, atMost }: Target): "ok" | "MISSED" | "not shown" {
  if (got === undefined || Number.isNaN(got)) return "not shown";
  return got >= (atLeast ?? Number.NEGATIVE_INFINITY) && got <= (atMost ?? Number.POSITIVE_INFINITY) ? "ok" : "MISSED";
}

function lineOf(target: Target): readonly Figure[] {
  const { what, atLeast, atMost, got, missing } = target;
  const wanted = atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}`;
  return [what, wanted, got === undefined ? (missing ?? "-") : rounded(got), verdictOf(target)];
}

/** Three digits are all that a busy machine can give. */
export function rounded(value: number): Figure {
  if (!Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  return size >= 100 ? Math.round(value) : Number(value.toPrecision(size >= 10 ? 3 : 2));
}

function render(columns: readonly string[], rows: readonly (readonly Figure[])[]): string {
  const cells = [columns, ...rows.map((row) => row.map((cell) => (typeof cell === "number" ? grouped(cell) : cell)))];
  const widths = columns.map((_, i) => Math.max(...cells.map((row) => row[i]?.length ?? 0)));
  const isNumber = columns.map((_, i) => rows.some((row) => typeof row[i] === "number"));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, i) => (isNumber[i] ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
      .join("  ")
      .trimEnd();
  const [head = [], ...body] = cells;
  return [line(head), widths.map((width) => "-".repeat(width)).join("  "), ...body.map(line)].join("\n");
}

function grouped(value: number): string {
  const figure = rounded(value);
  return typeof figure === "number" ? figure.toLocaleString("en-US", { maximumFractionDigits: 3 }) : figure;
}

type Machine = {
  readonly cpus: number;
  readonly model: string;
  readonly load: number;
  /** Of all CPU time while the benchmark ran: idle, and taken away by the host. */
  readonly idleShare: number;
  readonly stolenShare: number;
};

/** Idle, stolen and all ticks since the machine started; zeros if they are not available. */
function cpuTicks(): { readonly idle: number; readonly stolen: number; readonly all: number } {
  try {
    const [line = ""] = readFileSync("/proc/stat", "utf8").split("\n");
    const ticks = line.split(/\s+/).slice(1, 9).map(Number);
    return { idle: (ticks[3] ?? 0) + (ticks[4] ?? 0), stolen: ticks[7] ?? 0, all: ticks.reduce((a, b) => a + b, 0) };
  } catch {
    return { idle: 0, stolen: 0, all: 0 };
  }
}

function machineDuring(before: ReturnType<typeof cpuTicks>): Machine {
  const after = cpuTicks();
  const all = Math.max(1, after.all - before.all);
  return {
    cpus: cpus().length,
    model: cpus()[0]?.model.trim() ?? "unknown",
    load: loadavg()[0] ?? 0,
    idleShare: (after.idle - before.idle) / all,
    stolenShare: (after.stolen - before.stolen) / all,
  };
}

const describeMachine = ({ cpus: count, model, load, idleShare, stolenShare }: Machine): string =>
  `Machine: ${count} x ${model}, load ${load.toFixed(1)}, ${Math.round(idleShare * 100)}% idle and ` +
  `${Math.round(stolenShare * 100)}% taken by the host meanwhile. Where others share the machine trust CPU per ` +
  `operation and ratios within one run, not rates.`;

function commit(): string {
  try {
    return execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
  } catch {
    return "unknown";
  }
}
