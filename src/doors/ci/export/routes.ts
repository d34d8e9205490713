/** Serves what is exported of runs, run by run: nothing is held that the reader has not taken. */
import type { z } from "zod";
import { isFault } from "#base/fault.ts";
import { route, type Route } from "#http/route.ts";
import { Problem } from "#http/problem.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { door } from "#doors/ci/plan.ts";
import type { RunDetails } from "#doors/ci/endpoints.ts";
import type { Artifacts, SealedArtifact } from "#doors/ci/services/artifacts/artifacts.ts";
import type { TestReports } from "#doors/ci/tests/reports.ts";
import { type ExportedRun, exportRuns, searchArtifacts } from "./endpoints.ts";

export type ExportPorts = {
  readonly client: Pick<WorkClient, "jobs">;
  readonly artifacts: Pick<Artifacts, "list" | "search">;
  readonly reports: Pick<TestReports, "ofRun">;
  readonly shown: (run: string, tenant: string) => Promise<z.input<typeof RunDetails>>;
};

const pageSize = 100;
const dayMs = 86_400_000;

export const exportRoutes = (ports: ExportPorts): readonly Route[] => [
  route(exportRuns, ({ query: { from, to }, tenant }) => {
    const [fromMs, toMs] = [from && Date.parse(from), to && Date.parse(to) + dayMs];
    if (typeof fromMs === "number" && typeof toMs === "number" && toMs <= fromMs)
      throw new Problem(400, "to: it is before from");
    const span = {
      ...(typeof fromMs === "number" && { fromMs }),
      ...(typeof toMs === "number" && { toMs }),
    };
    return { body: exported(ports, tenant, span) };
  }),
  route(searchArtifacts, async ({ query, tenant }) => {
    const { found, isCut } = await ports.artifacts.search(tenant, query);
    const items = found.map((one) => ({ run: one.run, repository: one.repository, ...shownArtifact(one) }));
    return { body: { items, isCut } };
  }),
];

async function* exported(
  { client, artifacts, reports, shown }: ExportPorts,
  tenant: string,
  span: { readonly fromMs?: number; readonly toMs?: number },
): AsyncGenerator<z.input<typeof ExportedRun>> {
  let cursor: string | undefined;
  do {
    const page = await client.jobs({ tenant, door, limit: pageSize, ...span, ...(cursor !== undefined && { cursor }) });
    for (const { jobId } of page.jobs) {
      const run = await shown(jobId, tenant).catch((error: unknown) => {
        if (isRejected(error) || isFault(error, "not-found")) return undefined; // its time was over meanwhile
        throw error;
      });
      if (!run) continue;
      const [kept, tests] = await Promise.all([artifacts.list(tenant, jobId), reports.ofRun(tenant, jobId)]);
      yield {
        run,
        artifacts: kept.map(shownArtifact),
        tests: tests.map(({ job, name, passed, failed, skipped }) => ({ job, name, passed, failed, skipped })),
      };
    }
    ({ cursor } = page);
  } while (cursor !== undefined);
}

const shownArtifact = ({ name, createdAtMs, expiresAtMs, sealed: { sha256, content } }: SealedArtifact) => ({
  name,
  sizeBytes: content.sizeBytes,
  sha256,
  createdAt: new Date(createdAtMs).toISOString(),
  expiresAt: new Date(expiresAtMs).toISOString(),
});
