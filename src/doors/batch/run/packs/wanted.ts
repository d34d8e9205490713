/** Pure: which packs one part of a stage reads, and which of their rows. */
import type { Digest } from "#base/digest.ts";
import type { StageDocument } from "#doors/batch/documents.ts";
import type { Input } from "#doors/batch/plan/stage.ts";
import { packRange, type Slice } from "#doors/batch/plan/tasks.ts";
import type { WantedRows } from "./footer.ts";

type Named<T> = ReadonlyMap<string, T & { readonly digests: readonly Digest[] }>;

export type Wanted<T> = {
  /** Without those that the part does not read. */
  readonly packs: Named<T>;
  /** Undefined: all rows of it. */
  readonly of: (digest: Digest) => WantedRows | undefined;
};

export function wantedRows<T extends { readonly producers: readonly unknown[] }>(
  { stage, parts }: StageDocument,
  part: number,
  named: Named<T>,
): Wanted<T> {
  const what = parts[part];
  const inputs = stage.branches[what?.branch ?? 0]?.inputs ?? [];
  const packs = new Map<string, T & { readonly digests: readonly Digest[] }>();
  const rows = new Map<Digest, WantedRows | undefined>();
  for (const [id, one] of named) {
    const of = inputs.filter(
      (input): input is Extract<Input, { from: "stage" }> => input.from === "stage" && input.stage === id,
    );
    const isPart = of.length > 0 && of.every(({ take }) => take === "part");
    const range = isPart && what ? packRange(what.slice, id) : undefined;
    const cut = <U>(list: readonly U[]): readonly U[] => (range ? list.slice(range.from, range.to) : list);
    const digests = cut(one.digests);
    packs.set(id, { ...one, digests, producers: cut(one.producers) });
    const wanted = isPart && what ? rowsOf(what.slice) : undefined;
    // What two inputs read in different parts is read as a whole.
    for (const digest of digests) rows.set(digest, rows.has(digest) ? undefined : wanted);
  }
  return { packs, of: (digest) => rows.get(digest) };
}

function rowsOf(slice: Slice): WantedRows | undefined {
  if (slice.by === "partition") return { column: "p", from: slice.from, to: slice.to };
  if (slice.by !== "range") return undefined;
  const key = (hex: string | undefined, name: "from" | "to"): object =>
    hex === undefined ? {} : { [name]: Buffer.from(hex, "hex") };
  return { column: "k", ...key(slice.from, "from"), ...key(slice.to, "to") };
}
