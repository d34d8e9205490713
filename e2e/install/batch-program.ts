/** A program that imports "millrace/batch" from the installed package. */
import { equal } from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** Where the package was installed, the data folder of its node, and this repository. */
export type InstalledAt = { readonly folder: string; readonly data: string; readonly root: string };

const job = `
import { dataset, col, sum, attach, type Job } from "millrace/batch";

type Order = { id: number; country: string; cents: number };
const orders = dataset.csv<Order>("orders.csv");
const job: Job<{ country: string; cents: number }> = await orders
  .where(col("cents").gt(1))
  .groupBy("country")
  .agg<{ cents: unknown }>({ cents: sum("cents") })
  .sort("country")
  .submit() as Job<{ country: string; cents: number }>;
const again = await attach<{ country: string; cents: number }>(job.id);
const first: string | undefined = (await again.rows())[0]?.country;
const written = await orders.write.parquet("out", { partitionBy: ["country"] });
console.log(JSON.stringify([first, await orders.count(), written]));
`;

/** JavaScript runs below node_modules without help, and a user's compiler accepts the types. */
export async function usesBatch({ folder, data, root }: InstalledAt): Promise<void> {
  writeFileSync(join(folder, "orders.csv"), "id,country,cents\n1,fr,5\n2,de,7\n3,fr,1\n");
  writeFileSync(join(folder, "job.mts"), job);
  const env = { ...process.env, MILLRACE_DATA: data };
  const told = execFileSync(process.execPath, ["job.mts"], { cwd: folder, env, encoding: "utf8", timeout: 60_000 });
  const [country, count, written] = JSON.parse(told) as [string, number, { rows: number; files: number }];
  equal(country, "de");
  equal(count, 3);
  equal(written.rows, 3);
  equal(written.files, 2);
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const flags = ["--noEmit", "--strict", "--module", "nodenext", "--target", "esnext", "--types", "node"];
  const types = ["--typeRoots", join(root, "node_modules", "@types")];
  execFileSync(process.execPath, [tsc, ...flags, ...types, "job.mts"], {
    cwd: folder,
    encoding: "utf8",
    stdio: "pipe",
  });
}
