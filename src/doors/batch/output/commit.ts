/** A query's result as files of a version, before it counts (versions.ts, versions-in-bucket.ts). */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import type { CommitDocument } from "#doors/batch/documents.ts";
import { quoteName, quoteText } from "#doors/batch/plan/quoting.ts";
import { parquetColumns } from "#doors/batch/plan/named-columns.ts";
import { digestOf } from "#doors/batch/plan/stage.ts";
import type { Engines } from "#doors/batch/run/engines.ts";
import type { TaskLimits } from "#doors/batch/run/task.ts";
import { manifestName, syncFolder } from "./versions.ts";

export type CommitPorts = {
  readonly engines: Engines;
  readonly limits: TaskLimits;
  readonly signal: AbortSignal;
  /** For what does not fit into memory. */
  readonly scratch: string;
};

type Manifest = {
  readonly version: string;
  readonly rows: number;
  readonly partitionBy: readonly string[];
  readonly columns: CommitDocument["columns"];
  readonly files: readonly { readonly path: string; readonly bytes: number; readonly sha256: string }[];
};

export type StagedOutput = Pick<Manifest, "version" | "rows" | "files"> & { readonly manifest: Manifest };

/** `paths` are those of the packs, in their order. What is in `staging` afterwards is a whole version, on disk. */
export async function stageOutput(
  document: CommitDocument,
  paths: readonly string[],
  staging: string,
  ports: CommitPorts,
): Promise<StagedOutput> {
  const { partitionBy, columns, packs } = document;
  checkPartition(document);
  // The same rows in the same form are the same version, whichever job wrote them.
  const version = digestOf({ engine: document.engine, partitionBy, columns, packs: packs.map(({ digest }) => digest) });
  const rows = packs.reduce((sum, one) => sum + one.rows, 0);
  const statements = copies(document, paths, { staging, version, rows }).map((sql) => ({ sql }));
  await ports.engines.run(
    {
      paths: [...paths, staging],
      folders: [`${staging}/`],
      spillFolder: join(ports.scratch, "spill"),
      ...ports.limits,
      settings: [],
      statements,
    },
    ports.signal,
  );
  const files = await seal(staging);
  const manifest: Manifest = { version, rows, partitionBy, columns, files };
  await writeFile(join(staging, manifestName), `${JSON.stringify(manifest, null, 1)}\n`, { flush: true });
  return { version, rows, files, manifest };
}

function checkPartition({ partitionBy, columns }: CommitDocument): void {
  const names = columns.map(({ name }) => name);
  const missing = partitionBy.find((name) => !names.includes(name));
  if (missing !== undefined)
    throw new Fault("invalid", "write result", { column: missing, why: `the result has ${names.join(", ")}` });
  if (new Set(names).size < names.length)
    throw new Fault("invalid", "write result", { why: "two columns of the result have one name" });
  if (partitionBy.length > 0 && partitionBy.length >= names.length)
    throw new Fault("invalid", "write result", { why: "no column would be left in the files" });
}

/** Names are unlike those of other versions: a reader in between finds a file missing, and never one of another. */
function copies(
  { partitionBy, columns }: CommitDocument,
  paths: readonly string[],
  { staging, version, rows }: { readonly staging: string; readonly version: string; readonly rows: number },
): readonly string[] {
  const select = (from: readonly string[]): string =>
    `select ${parquetColumns(columns)} from read_parquet([${from.map(quoteText).join(", ")}])`;
  const mark = version.slice(0, 12);
  if (partitionBy.length > 0 && rows > 0) {
    const by = partitionBy.map(quoteName).join(", ");
    const how = `format parquet, compression zstd, partition_by (${by}), filename_pattern 'part-${mark}-{i}'`;
    return [`copy (${select(paths)}) to ${quoteText(staging)} (${how}, overwrite_or_ignore true)`];
  }
  return paths.map((path, i) => {
    const file = join(staging, `part-${mark}-${String(i).padStart(5, "0")}.parquet`);
    return `copy (${select([path])}) to ${quoteText(file)} (format parquet, compression zstd)`;
  });
}

/** All files are on disk before any of them counts. */
async function seal(staging: string): Promise<Manifest["files"]> {
  const found: { path: string; bytes: number; sha256: string }[] = [];
  const entries = await readdir(staging, { withFileTypes: true, recursive: true });
  for (const entry of entries.toSorted((a, b) => (place(a) < place(b) ? -1 : 1))) {
    const path = place(entry);
    if (entry.isDirectory()) {
      await syncFolder(path);
      continue;
    }
    await using handle = await open(path, "r+");
    await handle.sync();
    const hash = createHash("sha256");
    let bytes = 0;
    for await (const part of createReadStream(path, { highWaterMark: 1024 * 1024 })) {
      hash.update(part as Buffer);
      bytes += (part as Buffer).length;
    }
    found.push({ path: path.slice(staging.length + 1), bytes, sha256: hash.digest("hex") });
  }
  return found;
}

const place = ({ parentPath, name }: { readonly parentPath: string; readonly name: string }): string =>
  join(parentPath, name);
