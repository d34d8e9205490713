/** A node in a process of its own, with a repository of workflows, for the benchmarks of CI. */
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

export type CiSite = AsyncDisposable & { readonly ci: CiNode; readonly node: NodeProcess };

export async function openSite(workflows: Readonly<Record<string, string>>, slots: number): Promise<CiSite> {
  const folder = mkdtempSync(join(tmpdir(), "millrace-bench-ci-"));
  const files = Object.entries(workflows).map(([name, text]) => [`.github/workflows/${name}.yml`, text] as const);
  const repository = new TestRepository(Object.fromEntries(files));
  const node = await NodeProcess.open(folder, { worker: { slots }, cluster: { shards: 1 } });
  const ci = new CiNode(`http://${node.address}`, () => readOwnerToken(dataFolder(folder)) ?? "");
  await ci.register(repositoryName, repository.folder);
  return {
    ci,
    node,
    async [Symbol.asyncDispose]() {
      await node[Symbol.asyncDispose]();
      repository[Symbol.dispose]();
      clearAway(folder);
    },
  };
}
