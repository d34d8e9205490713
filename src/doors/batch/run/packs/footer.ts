/**
 * Pure: which bytes of a pack hold the rows that a task wants, and a footer that names only those. A pack is sorted by
 * its last column, so that the row groups of one partition lie next to each other.
 */
import { readStruct, varint, zigzag, type ThriftValue } from "./thrift.ts";

/** Of the last column: rows from this value up to, but not including, that one. Numbers, or bytes as Buffers. */
export type WantedRows =
  | { readonly column: "p"; readonly from: number; readonly to: number }
  | { readonly column: "k"; readonly from?: Buffer; readonly to?: Buffer };

export type FooterSlice = {
  /** Where the wanted row groups lie in the pack; equal if there are none. */
  readonly from: number;
  readonly to: number;
  readonly footer: Buffer;
};

/** Numbers of the fields that Parquet gives its structures. */
const file = { rows: 3, groups: 4 } as const;
const group = { columns: 1, rows: 3 } as const;
const meta = { path: 3, bytes: 7, dataAt: 9, dictionaryAt: 11, statistics: 12 } as const;
const statistics = { max: 5, min: 6 } as const;
const columnMeta = 3;

/** Undefined where that cannot be told from the footer: then the whole pack has to be read. */
export function sliceFooter(footer: Buffer, wanted: WantedRows): FooterSlice | undefined {
  const all = readStruct(footer);
  const rows = all.fields?.get(file.rows);
  const groups = all.fields?.get(file.groups);
  if (!rows || !groups?.list) return undefined;
  const taken: ThriftValue[] = [];
  for (const one of groups.list) {
    const isWanted = hasRows(one, wanted);
    if (isWanted === undefined) return undefined;
    if (isWanted) taken.push(one);
  }
  const places = taken.map(placeOf);
  if (places.some((place) => place === undefined)) return undefined;
  const known = places.flatMap((place) => place ?? []);
  const count = taken.reduce((sum, { fields }) => sum + (fields?.get(group.rows)?.number ?? 0), 0);
  const short = Buffer.concat([
    footer.subarray(0, rows.from),
    zigzag(count),
    footer.subarray(rows.to, groups.from),
    listHead(taken.length),
    ...taken.map(({ from, to }) => footer.subarray(from, to)),
    footer.subarray(groups.to),
  ]);
  return {
    from: Math.min(...known.map(({ from }) => from), Number.MAX_SAFE_INTEGER),
    to: Math.max(...known.map(({ to }) => to), 0),
    footer: short,
  };
}

const structKind = 12;

const listHead = (count: number): Buffer =>
  count < 15
    ? Buffer.from([(count << 4) | structKind])
    : Buffer.concat([Buffer.from([0xf0 | structKind]), varint(BigInt(count))]);

const metasOf = (one: ThriftValue): readonly (ThriftValue["fields"] | undefined)[] =>
  (one.fields?.get(group.columns)?.list ?? []).map(({ fields }) => fields?.get(columnMeta)?.fields);

function placeOf(one: ThriftValue): { readonly from: number; readonly to: number } | undefined {
  let from = Number.MAX_SAFE_INTEGER;
  let to = 0;
  for (const fields of metasOf(one)) {
    const data = fields?.get(meta.dataAt)?.number;
    const bytes = fields?.get(meta.bytes)?.number;
    if (data === undefined || bytes === undefined) return undefined;
    const begins = Math.min(data, fields?.get(meta.dictionaryAt)?.number || data);
    from = Math.min(from, begins);
    to = Math.max(to, begins + bytes);
  }
  return to > 0 ? { from, to } : undefined;
}

/** Undefined where the row group does not say. */
function hasRows(one: ThriftValue, wanted: WantedRows): boolean | undefined {
  const fields = metasOf(one).at(-1);
  const name = fields?.get(meta.path)?.list?.[0]?.bytes?.toString("utf8");
  const known = fields?.get(meta.statistics)?.fields;
  const [min, max] = [known?.get(statistics.min)?.bytes, known?.get(statistics.max)?.bytes];
  if (name !== wanted.column || !min || !max) return undefined;
  if (wanted.column === "k") {
    const isBelow = wanted.to !== undefined && Buffer.compare(min, wanted.to) >= 0;
    const isAbove = wanted.from !== undefined && Buffer.compare(max, wanted.from) < 0;
    return !isBelow && !isAbove;
  }
  if (min.length !== 4 || max.length !== 4) return undefined;
  return min.readUInt32LE() < wanted.to && max.readUInt32LE() >= wanted.from;
}
