/** A query whose tasks take a while, and how tests look at its job. */
import { readdirSync, readFileSync } from "node:fs";
import { dataset, sql, type Dataset, type Job } from "#doors/batch/api/batch.ts";
import type { NodeProcess } from "#e2e/store/node-process.ts";

export const stagedIn = (folder: string) => ({
  splitBytes: 60_000,
  broadcastBytes: 1,
  partitions: 2,
  folder,
  fresh: true,
});

const nested = `${"md5(".repeat(8)}country || ms${")".repeat(8)}`;

export const slowQuery = (folder: string): Dataset<{ key: string; n: number }> =>
  dataset
    .parquet(`${folder}/events-*.parquet`)
    .select({ key: sql([nested] as unknown as TemplateStringsArray) })
    .groupBy("key")
    .agg({ n: sql`count(*)` }) as unknown as Dataset<{ key: string; n: number }>;

export type View = {
  readonly result?: readonly string[];
  readonly stages: readonly { readonly tasks: number; readonly reused: number; readonly about: string }[];
};
export type Task = {
  readonly task: string;
  readonly phase: string;
  readonly attempts: number;
  readonly result?: string;
};

export const viewOf = async ({ id }: Job<object>, node: NodeProcess): Promise<View> =>
  (await (await fetch(`http://${node.address}/v1/batch/queries/${id}`, { headers: node.headers })).json()) as View;

export const tasksOf = async ({ id }: Job<object>, node: NodeProcess): Promise<readonly Task[]> => {
  const answer = await fetch(`http://${node.address}/v1/jobs/${id}`, { headers: node.headers });
  return ((await answer.json()) as { readonly tasks?: readonly Task[] }).tasks ?? [];
};

/** Process ids of the engines of the node with this data folder. */
export function enginesOf(data: string): readonly number[] {
  return readdirSync("/proc").flatMap((name) => {
    try {
      if (!/^\d+$/.test(name) || !readFileSync(`/proc/${name}/cmdline`, "utf8").includes("engine-child")) return [];
      const parent = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1];
      return readFileSync(`/proc/${parent}/cmdline`, "utf8").includes(data) ? [Number(name)] : [];
    } catch {
      return []; // ended meanwhile
    }
  });
}
