/**
 * The journal's rules over a synchronous store (memory, SQLite). Each operation runs inside one write transaction and
 * checks before it writes: a Fault leaves no trace.
 */
import { logOver } from "./engine-log.ts";
import { ownershipOver } from "./engine-ownership.ts";
import { snapshotsOver } from "./engine-snapshots.ts";
import type { Tables } from "./tables.ts";

export type Engine = ReturnType<typeof engineOver>;

/** The first argument of every operation is the time on the store's clock. */
export const engineOver = (tables: Tables) => ({
  ...ownershipOver(tables),
  ...logOver(tables),
  ...snapshotsOver(tables),
});
