/**
 * The journal in memory, for simulation and tests: the same rules and the same bytes as the durable ones, on a clock
 * that the caller controls. Nothing waits for a timer, so a simulator decides what happens when.
 */
import type { Entries } from "#base/entries.ts";
import { Fault } from "#base/fault.ts";
import { memoryEntries } from "#base/memory-entries.ts";
import { assembled, type Call } from "#journal/engine/assembled.ts";
import { engineOver } from "#journal/engine/engine.ts";
import type { Journal } from "#journal/journal.ts";
import { memoryHistory } from "./memory-history.ts";
import { memoryTables, type Tamper } from "./memory-tables.ts";
import { memoryRecords } from "#records/memory.ts";
import { encodeUnlinked, recordSize } from "#journal/record.ts";

export type MemoryStore = {
  /** One node's view of the store. All views share the stored data. */
  connect(): Journal;
  readonly tamper: Tamper;
};

export function memoryStore(storeNowMs: () => number): MemoryStore {
  const tables = memoryTables();
  const engine = engineOver(tables);
  const history = memoryHistory((shard) => tables.shard(shard)?.epoch);
  const entries: Entries = memoryEntries(storeNowMs);
  const records = memoryRecords(storeNowMs);

  function connect(): Journal {
    let closed = false;
    const call: Call = async (op, ...args) => {
      if (closed) throw new Fault("unavailable", op, { why: "the journal is closed" });
      // The engine's operations differ in their arguments; `Call` has already matched them to the name.
      const run = engine[op] as (nowMs: number, ...rest: typeof args) => ReturnType<(typeof engine)[typeof op]>;
      return run(storeNowMs(), ...args);
    };
    return assembled({
      call,
      append(batches) {
        const laid = batches.map(({ keys, ...body }) => {
          const record = new Uint8Array(recordSize(body.payload));
          encodeUnlinked(record, body);
          return { record, keys };
        });
        return call("append", laid);
      },
      async describe() {
        return {
          kind: "memory",
          durable: false,
          notes: ["kept in memory only: everything is lost when the process ends"],
        };
      },
      history,
      entries,
      records,
      async close() {
        closed = true;
      },
    });
  }
  return { connect, tamper: tables.tamper };
}
