/** What a query that has ended came to: its result, its plan, or why it has none. */
import type { ExitCode, World } from "#door/command.ts";
import { explainPlan } from "#doors/batch/explain.ts";
import type { QueryView } from "#doors/batch/endpoints.ts";
import { readPlan, type ReadBlob } from "#doors/batch/api/fetched.ts";
import { showResult } from "./results.ts";

export type EndedFlags = {
  readonly json?: boolean;
  readonly explain?: boolean;
  readonly verbose?: boolean;
  readonly out?: string;
  readonly rows?: string;
};

export async function showEnded(
  jobId: string,
  { phase, plan, result, written, failure }: QueryView,
  { json, explain, verbose, out, rows }: EndedFlags,
  { readBlob, world }: { readonly readBlob: ReadBlob; readonly world: World },
): Promise<ExitCode> {
  if (phase !== "SUCCEEDED" || plan === undefined) {
    if (json) world.note(JSON.stringify({ jobId, phase, why: failure }));
    else for (const line of [`${jobId} ${phase}`, ...(failure ?? "").split("\n")]) if (line !== "") world.note(line);
    return 1;
  }
  const document = await readPlan(plan, readBlob);
  if (explain) {
    if (json)
      world.out(
        JSON.stringify({ jobId, plan, columns: document.columns, lines: explainPlan(document, { withSql: true }) }),
      );
    else for (const line of explainPlan(document, { withSql: verbose === true })) world.out(line);
    return 0;
  }
  if (!result) {
    world.note(`${jobId} has no result: it was planned only`);
    return 1;
  }
  if (written) {
    const { folder, files, rows: count } = written;
    if (json) world.out(JSON.stringify({ jobId, ...written }));
    else world.note(`${count} rows in ${files} ${files === 1 ? "file" : "files"} written to ${folder}`);
    return 0;
  }
  await showResult(document, result, {
    readBlob,
    world,
    shown: {
      ...(json && { json }),
      ...(out !== undefined && { out }),
      ...(rows !== undefined && { rows: Number(rows) }),
    },
  });
  return 0;
}
