// One PostgreSQL for all test files of a run that only need databases of their own:
//
//   const postgres = await sharedPostgres();
//   test("…", { skip: postgres.skip }, async () => { const url = await postgres.server().freshDatabase(); … });
//   after(() => postgres.stop());
//
// `npm test` starts the server and names it in the environment; a file that runs alone starts its own. Tests that
// stop, restart or configure their server use startPostgres instead.
import { createDatabase, startPostgres } from "./postgres.ts";

export const sharedServerVariable = "MILLRACE_TEST_POSTGRES";

type DatabaseServer = {
  /** A database of this file's own, empty at its start. */
  url(): string;
  /** Another empty database. */
  freshDatabase(): Promise<string>;
};

export type SharedPostgres = {
  /** False, or why there is no server: the `skip` of every test that needs one. */
  readonly skip: false | string;
  /** The server; throws where `skip` is set. */
  server(): DatabaseServer;
  /** Stops the server if this file started it. */
  stop(): Promise<void>;
};

let databases = 0; // of this process, in which several files may run

export async function sharedPostgres(): Promise<SharedPostgres> {
  const given = process.env[sharedServerVariable];
  if (given === undefined || given === "") return await startPostgres({ durable: false });
  const freshDatabase = (): Promise<string> => createDatabase(given, `shared_${process.pid}_${(databases += 1)}`);
  const own = await freshDatabase();
  return {
    skip: false,
    server: () => ({ url: () => own, freshDatabase }),
    stop: () => Promise.resolve(),
  };
}
