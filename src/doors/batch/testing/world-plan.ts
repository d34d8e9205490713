/** A plan of several waves over as many made-up files as a test wants. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PlanDocument } from "#doors/batch/documents.ts";
import { sourceFiles } from "#doors/batch/grants/source-files.ts";
import { prepareQuery } from "#doors/batch/run/prepare.ts";
import { NearEngine } from "./near-engine.ts";

/** What `c` wrote is read by two waves, with others between them: there a change of it could go unnoticed. */
const sql =
  "with c as materialized (select k, sum(v) as v from 'a.csv' group by k), " +
  "d as (select v, count(*) as n from c group by v) " +
  "select b.k, d.n, c.v from d join c on d.v = c.v join 'b.csv' b on b.k = c.k order by b.k";

export async function worldPlan(files: number, partitions: number): Promise<PlanDocument> {
  const folder = await mkdtemp(join(tmpdir(), "millrace-world-"));
  try {
    for (const name of ["a", "b"]) await writeFile(join(folder, `${name}.csv`), "k,v\n1,2\n3,4\n5,6\n7,8\n");
    const settings = { splitBytes: 10, broadcastBytes: 1, partitions, reduceBytes: files * 4 };
    const plan = await prepareQuery(
      { sql, settings },
      {
        engines: await NearEngine.open(),
        files: sourceFiles({ tenant: "t", isGranted: false, folder }, { grants: [] }),
        signal: new AbortController().signal,
        scratch: folder,
      },
    );
    const many = (name: string) =>
      Array.from({ length: files }, (_, i) => ({ path: `/${name}${i}`, bytes: 10, place: "" }));
    return { ...plan, sources: plan.sources.map((source, i) => ({ ...source, files: many(`s${i}-`) })) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
