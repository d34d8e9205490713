/** Records in memory: for a node without a durable journal, for simulation and for tests. */
import { orderOf, type Position } from "./cursor.ts";
import { fitting, recordsFrom, recordsOver, type RecordTables } from "./engine.ts";
import type { RecordKind, RecordStore, StoredRecord } from "./records.ts";
import { storedOf, type KindRow, type RecordRow } from "./rules.ts";

type Kept = { row: KindRow; readonly records: Map<string, RecordRow> };

export function memoryRecords(nowMs: () => number): RecordStore {
  const engine = recordsOver(memoryTables()) as unknown as Readonly<
    Record<string, (nowMs: number, ...args: readonly unknown[]) => unknown>
  >;
  return recordsFrom(async (op, args) => engine[op]?.(nowMs(), ...args));
}

function memoryTables(): RecordTables {
  const kinds = new Map<string, Map<string, Kept>>(); // by kind, by tenant
  const keptOf = ({ tenant, kind }: RecordKind): Kept | undefined => kinds.get(kind)?.get(tenant);
  const stored = (kind: string, tenant: string | undefined): StoredRecord[] =>
    [...(kinds.get(kind) ?? [])].flatMap(([of, { records }]) =>
      tenant === undefined || of === tenant
        ? [...records.values()].flatMap((row) => storedOf({ tenant: of }, row) ?? [])
        : [],
    );
  return {
    kind: (of) => keptOf(of)?.row,
    putKind(of, row) {
      const kept = keptOf(of);
      if (kept) kept.row = row;
      else kinds.set(of.kind, (kinds.get(of.kind) ?? new Map()).set(of.tenant, { row, records: new Map() }));
    },
    row: (id) => keptOf(id)?.records.get(id.name),
    putRow: (id, row) => void keptOf(id)?.records.set(id.name, row),
    forget(of, version) {
      const records = keptOf(of)?.records ?? new Map<string, RecordRow>();
      for (const [name, row] of records) if (row.document === null && row.version <= version) records.delete(name);
    },
    list({ tenant, kind, from, order, limit, after }) {
      const compare: (a: Position, b: Position) => number = orderOf[order];
      const found = stored(kind, tenant)
        .filter((record) => record.name.startsWith(from) && (!after || compare(after, record) < 0))
        .toSorted(compare);
      return fitting(found, limit);
    },
    changed: (of, since) =>
      [...(keptOf(of)?.records.values() ?? [])]
        .filter(({ version }) => version > since)
        .toSorted((a, b) => a.version - b.version),
    newest: (kind) => [...(kinds.get(kind) ?? [])].map(([tenant, { row }]) => ({ tenant, version: row.version })),
  };
}
