/** Test support: a state as text, to be compared with another. */
import { beginCapture } from "#kernel/snapshot/capture.ts";
import type { State } from "#kernel/model/state.ts";

/** The whole snapshot at once. */
export function snapshotOf(state: State): string[] {
  const capture = beginCapture(state);
  const chunks: string[] = [];
  for (let chunk = capture.next(1_000_000); chunk !== undefined; chunk = capture.next(1_000_000)) chunks.push(chunk);
  return chunks;
}

type Row = readonly unknown[];

/**
 * What the log determines of a state, as sorted text: without leases (renewals are not logged), without the time that
 * passed since the last event, and without executors that hold no claim.
 */
export function factsOf(state: State): string[] {
  const rows = snapshotOf(state).flatMap((chunk) => JSON.parse(chunk) as Row[]);
  const shared = new Map<string, string>();
  for (const [kind, id, value] of rows)
    if (kind === "P" || kind === "M") shared.set(`${String(kind)}${String(id)}`, JSON.stringify(value));
  return rows.flatMap((row) => factOf(row, shared)).toSorted();
}

function factOf(row: Row, shared: ReadonlyMap<string, string>): string[] {
  const copy = structuredClone(row) as unknown[];
  switch (row[0]) {
    case "P":
    case "M":
      return [];
    case "H":
      copy[2] = { ...(copy[2] as object), nowMs: 0, keysElsewhereUntilMs: 0 };
      break;
    case "X": {
      const [, id, drained, failures, , , silent] = copy as [
        unknown,
        unknown,
        unknown,
        number,
        unknown,
        unknown,
        unknown[][],
      ];
      return [JSON.stringify(["X", id, drained, failures, silent.map(withoutLease).toSorted(byToken)])];
    }
    case "S":
      copy[3] = shared.get(`P${String(row[3])}`);
      copy[4] = shared.get(`M${String(row[4])}`) ?? -1;
      break;
    case "A":
      copy[4] = shared.get(`M${String(row[4])}`);
      break;
    case "T": {
      copy[8] = shared.get(`M${String(row[8])}`);
      const rare = copy.at(-1) as { claims: unknown[][] } | null;
      if (rare) rare.claims = rare.claims.map(withoutLease);
      break;
    }
    default:
  }
  return [JSON.stringify(copy)];
}

const byToken = ([a]: readonly unknown[], [b]: readonly unknown[]): number => Number(a) - Number(b);

/**
 * A claim's sixth field is the end of its lease, the seventh how long the shard was without owner: neither is logged.
 */
const withoutLease = (claim: readonly unknown[]): unknown[] => claim.toSpliced(5, 2);
