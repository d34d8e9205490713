/** Builds as a node tells them over HTTP, and as people read them. */
import { formatDuration } from "#base/units.ts";
import { fieldLines, tableLines } from "#door/table.ts";

export type ActionWords = {
  readonly key: string;
  readonly state: string;
  readonly action?: string;
  readonly attempts: number;
  readonly worker?: string;
  readonly message?: string;
};

export type BuildWords = {
  readonly build: string;
  readonly name: string;
  readonly phase: string;
  readonly reason?: string;
  readonly submittedAtMs: number;
  readonly endedAtMs?: number;
  readonly counts?: Readonly<Record<string, number>>;
  readonly actions?: readonly ActionWords[];
};

export type NewsWords = BuildWords & { readonly changed: readonly ActionWords[] };

export type ReportWords = ActionWords & {
  readonly exitCode: number;
  readonly outputs: readonly {
    readonly path: string;
    readonly blob?: string;
    readonly tree?: string;
    readonly link?: string;
    readonly executable?: boolean;
  }[];
  readonly stdout?: string;
  readonly stderr?: string;
};

export const endedPhases: ReadonlySet<string> = new Set(["succeeded", "failed", "cancelled"]);

export function buildLine({ build, name, phase, reason, submittedAtMs, endedAtMs, counts }: BuildWords): string {
  const took = formatDuration(Math.max(0, (endedAtMs ?? Date.now()) - submittedAtMs));
  const why = reason === undefined ? "" : `: ${reason}`;
  const how = counts ? `  ${countsLine(counts)}` : "";
  return `${build}  ${phase}${why}  ${name}  (${took})${how}`;
}

export const buildRows = (builds: readonly BuildWords[]): readonly string[] =>
  tableLines(
    ["BUILD", "PHASE", "TIME", "NAME", "ACTIONS"],
    builds.map(({ build, name, phase, submittedAtMs, endedAtMs, counts }) => [
      build,
      phase,
      formatDuration(Math.max(0, (endedAtMs ?? Date.now()) - submittedAtMs)),
      name,
      counts ? countsLine(counts) : "",
    ]),
  );

export const countsLine = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([state, count]) => `${count} ${state}`)
    .join(", ");

export function actionLine({ key, state, attempts, worker, message }: ActionWords): string {
  const on = worker === undefined ? "" : ` on ${worker}`;
  const again = attempts > 1 ? `, attempt ${attempts}` : "";
  const why = message === undefined ? "" : `: ${message.split("\n")[0]}`;
  return `  ${key}  ${state}${on}${again}${why}`;
}

export function reportLines(report: ReportWords): readonly string[] {
  const { exitCode, outputs, stdout, stderr, action, message } = report;
  return [
    actionLine(report).trimStart(),
    ...(message?.includes("\n") === true ? message.split("\n").map((line) => `    ${line}`) : []),
    ...(action === undefined ? [] : [`  action  ${action}`]),
    ...(exitCode === 0 ? [] : [`  exit code  ${exitCode}`]),
    ...fieldLines(outputs.map(({ path, blob, tree, link }) => [`  ${path}`, blob ?? tree ?? `-> ${link}`])),
    ...(stdout === undefined ? [] : [`  printed  ${stdout}`]),
    ...(stderr === undefined ? [] : [`  complained  ${stderr}`]),
  ];
}
