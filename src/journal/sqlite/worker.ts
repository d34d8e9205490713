/**
 * The thread that owns one SQLite connection: the log's, the history's or that of entries and records. Handles one
 * request at a time, in order.
 */
import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { must } from "#base/assert.ts";
import { Fault, type FaultCode, type FaultFacts } from "#base/fault.ts";
import { CommitFailed, faultOf, transaction } from "./database.ts";
import { fileGone, identityOf, OpenFiles, whileThere, type FileIdentity } from "./files.ts";
import { historySchema, historyUpgrades, historyVersion, sqliteHistory } from "./history.ts";
import { logRole } from "./log-role.ts";
import { openProjection } from "./projection.ts";
import { sharedRole } from "./shared-role.ts";

export type WorkerSetup = {
  readonly role: "log" | "history" | "shared";
  readonly path: string;
  /** The log's file, where the history reads the current epoch. */
  readonly logPath: string;
  readonly busyTimeoutMs: number;
  /** A thread that ended had opened the files before: create nothing in their place. */
  readonly isRestart: boolean;
};
export type Request = {
  readonly id: number;
  readonly op: string;
  /** Moves the store's clock, for tests. */
  readonly offsetMs: number;
  readonly args: readonly unknown[];
};
export type Answer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly code: FaultCode; readonly doing: string; readonly facts: FaultFacts };

export type RoleSetup = WorkerSetup & { readonly isDoubtful: boolean };

/** Runs one operation to completion. */
export type Role = {
  run(op: string, offsetMs: number, args: readonly unknown[]): unknown;
  readonly reads: ReadonlySet<string>;
  /** Before the node stops, while the connection is good: nothing is lost without it. */
  settle?(): void;
  close(): void;
};
export type Operation = (...args: readonly unknown[]) => unknown;

const historyReadOps = new Set("cursor job jobs count".split(" "));

function historyRole(setup: RoleSetup): Role {
  const { logPath, busyTimeoutMs } = setup;
  const db = openProjection({ ...setup, schema: historySchema, upgrades: historyUpgrades, version: historyVersion });
  const log = new DatabaseSync(logPath, { readOnly: true, timeout: busyTimeoutMs });
  const epochOf = log.prepare("select epoch from shards where shard = ?");
  const history = sqliteHistory(db, (shard) => (epochOf.get(shard) as { epoch: number } | undefined)?.epoch);
  const operations = history as unknown as Readonly<Record<string, Operation>>;
  return {
    reads: historyReadOps,
    run(op, _offsetMs, args) {
      const operation = must(operations[op], `operation ${op}`);
      return transaction(db, historyReadOps.has(op) ? "deferred" : "immediate", () => operation(...args));
    },
    close() {
      db.close();
      log.close();
    },
  };
}

function openRole(setup: RoleSetup & { readonly role: WorkerSetup["role"] }, offsetMs: number): Role {
  switch (setup.role) {
    case "log":
      return logRole(setup, offsetMs);
    case "history":
      return historyRole(setup);
    case "shared":
      return sharedRole(setup);
    default:
      return setup.role satisfies never;
  }
}

if (parentPort) {
  const port = parentPort;
  const setup = workerData as WorkerSetup;
  let opened: { readonly role: Role; readonly files: OpenFiles } | undefined;
  let identity: FileIdentity | undefined;
  const open = (op: string, offsetMs: number): NonNullable<typeof opened> => {
    const found = identityOf(setup.path);
    if (identity === undefined ? setup.isRestart && found === undefined : found !== identity)
      throw fileGone("unavailable", op, setup.path);
    const wanted = { ...setup, isDoubtful: setup.isRestart || identity !== undefined };
    const role = openRole(wanted, offsetMs);
    identity = identityOf(setup.path);
    return { role, files: new OpenFiles(setup.path) };
  };
  const perform = ({ op, offsetMs, args }: Request): unknown => {
    const { role, files } = (opened ??= open(op, offsetMs));
    return whileThere(files, { doing: op, isRead: role.reads.has(op) }, () => role.run(op, offsetMs, args));
  };
  port.on("message", (request: Request) => {
    const { id, op } = request;
    try {
      if (op === "close") {
        opened = settled(opened?.role);
        port.postMessage({ id, value: undefined } satisfies Answer);
        port.close();
        return;
      }
      port.postMessage({ id, value: perform(request) } satisfies Answer);
    } catch (error) {
      const { code, doing, facts } = faultOf(op, error);
      // After a failed sync the contents of the disk are unknown: reopen and read them back.
      if (error instanceof CommitFailed) opened = closed(opened?.role);
      port.postMessage({ id, code, doing, facts } satisfies Answer);
    }
  });
}

function settled(role: Role | undefined): undefined {
  try {
    role?.settle?.();
  } catch {
    // A full disk, say: the next start finds everything in the write-ahead log.
  }
  role?.close();
}

function closed(role: Role | undefined): undefined {
  try {
    role?.close();
  } catch (error) {
    throw new Fault("internal", "close database", {}, error);
  }
  return undefined;
}
