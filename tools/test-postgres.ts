// One PostgreSQL for a whole run, for the test files that ask testing/shared-postgres.ts for a database.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { startPostgres } from "#testing/postgres.ts";
import { sharedServerVariable } from "#testing/shared-postgres.ts";
import { repoRoot } from "./generate.ts";

const connectionsMax = "400"; // several files at once, each with a few nodes

/** Starts the server if one of the files wants it. Where that fails, each file tries by itself and says why not. */
export async function postgresFor(files: readonly string[]): Promise<{ stop(): Promise<void> }> {
  const wanted = files.some((file) => readFileSync(join(repoRoot, file), "utf8").includes("shared-postgres.ts"));
  if (!wanted) return { stop: () => Promise.resolve() };
  const postgres = await startPostgres({ durable: false, settings: { max_connections: connectionsMax } });
  if (!postgres.skip) process.env[sharedServerVariable] = postgres.server().url();
  return postgres;
}
