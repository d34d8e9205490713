/** Serves test reports. */
import { Problem } from "#http/problem.ts";
import { route, type Route } from "#http/route.ts";
import type { Sources } from "#sources/sources.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { findRun } from "#doors/ci/runs/look.ts";
import { listTestReports, listTests, putTestReport } from "./endpoints.ts";
import { shownTests } from "./history.ts";
import { type Report, reportBytes, type TestReports } from "./reports.ts";

export type TestRoutePorts = {
  readonly reports: TestReports;
  readonly client: Pick<WorkClient, "job">;
  readonly sources: Pick<Sources, "get">;
};

export const testRoutes = ({ reports, client, sources }: TestRoutePorts): readonly Route[] => [
  route(putTestReport, async ({ caller: { principal }, params: { name }, body }) => {
    if (!principal.claim) throw new Problem(403, "only a task calls this, with the token that it was given");
    return { body: shown(await reports.add(principal.claim, { name, bytes: await reportBytes(body) })) };
  }),
  route(listTestReports, async ({ params: { run }, tenant }) => {
    await findRun(client, run, tenant);
    const found = await reports.ofRun(tenant, run);
    const sum = (of: (report: Report) => number): number => found.reduce((all, one) => all + of(one), 0);
    const totals = {
      passed: sum((one) => one.passed),
      failed: sum((one) => one.failed),
      skipped: sum((one) => one.skipped),
      ms: sum((one) => one.ms),
    };
    return { body: { items: found.map(shown), ...totals } };
  }),
  route(listTests, async ({ params: { owner, name }, query, tenant }) => {
    await sources.get(tenant, `${owner}/${name}`);
    const history = await reports.history(tenant, `${owner}/${name}`);
    return { body: { items: shownTests(history, query).map((one) => ({ ...one })) } };
  }),
];

const shown = ({ atMs, digest: _digest, ...report }: Report) => ({ ...report, at: new Date(atMs).toISOString() });
