/** A node in a process of its own, with repositories of workflows, for the benchmarks of CI. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dataFolder } from "#app/node/data-folder.ts";
import { readOwnerToken } from "#app/node/owner-token.ts";
import { CiNode } from "#e2e/ci/ci-node.ts";
import { TestRepository } from "#e2e/ci/repository.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { clearAway } from "#testing/clear-away.ts";

export const repositoryName = "mill/flour";

export type CiSite = AsyncDisposable & {
  readonly ci: CiNode;
  readonly node: NodeProcess;
  readonly token: string;
  /** The path of the repository that all are copies of. */
  readonly repository: string;
};

export type SiteOptions = {
  readonly slots: number;
  readonly shards?: number;
  /** All with the same workflows. */
  readonly repositories?: readonly string[];
  readonly isolation?: "auto" | "none";
  /** More of the section `ci`. */
  readonly more?: object;
};

export async function openSite(workflows: Readonly<Record<string, string>>, options: SiteOptions): Promise<CiSite> {
  const { slots, shards = 1, repositories = [repositoryName], isolation = "auto", more } = options;
  const folder = mkdtempSync(join(tmpdir(), "millrace-bench-ci-"));
  const files = Object.entries(workflows).map(([name, text]) => [`.github/workflows/${name}.yml`, text] as const);
  const repository = new TestRepository(Object.fromEntries(files));
  const config = { worker: { slots }, cluster: { shards }, ci: { isolation, ...more } };
  const node = await NodeProcess.open(folder, config);
  const token = readOwnerToken(dataFolder(folder)) ?? "";
  const ci = new CiNode(`http://${node.address}`, () => token);
  for (const name of repositories) await ci.register(name, repository.folder);
  return {
    ci,
    node,
    token,
    repository: repository.folder,
    async [Symbol.asyncDispose]() {
      await node.stop();
      await node[Symbol.asyncDispose]();
      repository[Symbol.dispose]();
      clearAway(folder);
    },
  };
}

/** Cores are shared with others: CPU counts, and the rate is what it was. */
export const perOperation = (cpuUs: number, count: number): string => `${(cpuUs / 1_000 / count).toFixed(2)} ms CPU`;
