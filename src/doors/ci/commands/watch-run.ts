/** A run in a terminal: what becomes of its jobs and steps, and their logs. Goes on through restarts of the node. */
import { setTimeout as pause } from "node:timers/promises";
import type { z } from "zod";
import { isFault } from "#base/fault.ts";
import type { ExitCode, World } from "#door/command.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";
import { followLog, type RunDetails, searchLog, showRun } from "#doors/ci/endpoints.ts";
import { whyRun } from "#doors/ci/why/endpoints.ts";
import { duration } from "#doors/ci/local/view.ts";

type Shown = z.output<typeof RunDetails>;

const lookMs = 300;
const patienceMs = 60_000;
const whyMs = 3_000;

/** 0 when the run succeeded. */
export async function watchRun(
  fetch: Fetch,
  run: string,
  { json }: { readonly json: boolean },
  world: World,
): Promise<ExitCode> {
  const printed = new Set<string>();
  let askedMonoMs = Number.NEGATIVE_INFINITY;
  for (;;) {
    const shown = await patiently(() => callEndpoint(fetch, showRun, { params: { run } }));
    if (!json)
      for (const line of linesOf(shown)) {
        if (printed.has(line)) continue;
        printed.add(line);
        world.out(line);
      }
    if (shown.status === "completed") {
      world.progress("");
      if (json) world.out(JSON.stringify(shown));
      else world.out(`${signs[shown.conclusion ?? "cancelled"]} ${run} ${shown.title}: ${shown.conclusion}`);
      return shown.conclusion === "success" ? 0 : 1;
    }
    if (!json && shown.jobs.some(isStuck) && performance.now() - askedMonoMs > whyMs) {
      askedMonoMs = performance.now();
      for (const line of await unknownLabelsOf(fetch, run)) {
        if (printed.has(line)) continue;
        printed.add(line);
        world.out(line);
      }
    }
    const running = shown.jobs.filter(({ status }) => status === "in_progress").map(({ name }) => name);
    world.progress(`${run} ${shown.status}${running.length > 0 ? `: ${running.join(", ")}` : ""}`);
    await pause(lookMs);
  }
}

/** Planned, and given to no runner. */
const isStuck = ({ status, job }: Shown["jobs"][number]): boolean => status === "queued" && job !== undefined;

/** A label that no runner has is said at once: nothing would ever happen. */
async function unknownLabelsOf(fetch: Fetch, run: string): Promise<readonly string[]> {
  const { jobs } = await patiently(() => callEndpoint(fetch, whyRun, { params: { run } }));
  return jobs.flatMap(({ name, waits, lines }) =>
    waits?.unknownLabels ? [`[${name}] waits: ${lines.at(-1) ?? ""}`] : [],
  );
}

const signs = { success: "✔", failure: "✖", cancelled: "■", skipped: "-" } as const;

/** What has ended so far, in order. */
function linesOf({ jobs }: Shown): readonly string[] {
  return jobs.flatMap(({ name, steps, conclusion, isFailureAllowed, reason, runner, attempts, failure }) => [
    ...(runner !== undefined || conclusion !== undefined || steps.length > 0 ? [`[${name}] started`] : []),
    ...steps.flatMap((step) =>
      step.conclusion === undefined || step.tookMs === undefined
        ? []
        : [`[${name}] ${signs[step.conclusion]} ${step.name} ${duration(step.tookMs)}`],
    ),
    ...(attempts > 1 && failure !== undefined ? [`[${name}] attempt ${attempts}; the one before: ${failure}`] : []),
    ...(isFailureAllowed ? [`[${name}] ! failure, which it may`] : []),
    ...(conclusion === undefined || isFailureAllowed
      ? []
      : [`[${name}] ${signs[conclusion]} ${conclusion}${because(reason)}`]),
  ]);
}

const because = (reason: string): string => (reason === "" ? "" : `: ${reason}`);

export async function showLog(
  fetch: Fetch,
  wanted: {
    readonly run: string;
    readonly job: string;
    readonly follow?: boolean;
    readonly step?: string;
    readonly json?: boolean;
  },
  world: World,
): Promise<void> {
  const { run, job, follow = false, step, json } = wanted;
  let lastEventId: string | undefined;
  let isShed = false;
  const read = async (): Promise<void> => {
    isShed = false;
    const events = await callEndpoint(fetch, followLog, {
      params: { run, job },
      query: { follow: follow ? "true" : "false", ...(step !== undefined && { step }) },
      ...(lastEventId !== undefined && { lastEventId }),
    });
    for await (const { id, data } of events) {
      for (const line of data.lines) world.out(json ? JSON.stringify(line) : textOf(line));
      lastEventId = id ?? lastEventId;
      isShed = data.shed !== undefined;
    }
  };
  do await patiently(read);
  while (isShed);
}

export async function findInLog(
  fetch: Fetch,
  asked: {
    readonly run: string;
    readonly job: string;
    readonly search: string;
    readonly step?: string;
    readonly json?: boolean;
  },
  world: World,
): Promise<void> {
  const { run, job, search, step, json } = asked;
  const query = { text: search, ...(step !== undefined && { step }) };
  const { matches, isCut } = await callEndpoint(fetch, searchLog, { params: { run, job }, query });
  for (const match of matches) world.out(json ? JSON.stringify(match) : `${match.line}: ${match.text}`);
  if (isCut && !json) world.note("there are more; search for a longer text");
}

const heads: Readonly<Record<string, string>> = {
  started: "▶ ",
  ended: "= ",
  skipped: "- ",
  group: "┌ ",
  error: "error: ",
  warning: "warning: ",
  notice: "notice: ",
  debug: "debug: ",
  summary: "║ ",
};

const textOf = ({ kind, text }: { readonly kind: string; readonly text: string }): string =>
  `${kind in heads ? "" : "  "}${heads[kind] ?? ""}${text}`;

/** A node that restarts is waited for. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  const beganMonoMs = performance.now();
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const isAway = isFault(error, "unavailable") || error instanceof TypeError;
      if (!isAway || performance.now() - beganMonoMs > patienceMs) throw error;
      await pause(lookMs);
    }
  }
}
