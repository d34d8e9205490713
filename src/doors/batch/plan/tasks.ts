/** The tasks of a stage: which part of its inputs each one takes. */
import type { CutSettings } from "./settings.ts";
import { splitsOf, type Source, type Split } from "./source.ts";
import type { Branch, Facts, Stage } from "./stage.ts";

export type Slice =
  | { readonly by: "one" }
  | { readonly by: "source"; readonly split: Split }
  /** From and up to, but not including, a number; with `of`, only what those packs of one stage have of it. */
  | { readonly by: "partition"; readonly from: number; readonly to: number; readonly of?: PackRange }
  | { readonly by: "pack"; readonly from: number; readonly to: number }
  /** Hex of the first key, and of the first that belongs to the next one. */
  | { readonly by: "range"; readonly from?: string; readonly to?: string };

export type PackRange = { readonly stage: string; readonly from: number; readonly to: number };

type PartitionSlice = Extract<Slice, { by: "partition" }>;

export type TaskPart = { readonly branch: number; readonly slice: Slice };

export type TaskInput = { readonly sources: readonly Source[]; readonly settings: CutSettings };

export const tasksOf = (stage: Stage, input: TaskInput, facts: Facts): readonly TaskPart[] =>
  stage.branches.flatMap((branch, index) => slicesOf(branch, input, facts).map((slice) => ({ branch: index, slice })));

function slicesOf(branch: Branch, { sources, settings }: TaskInput, facts: Facts): readonly Slice[] {
  const { parts } = branch;
  switch (parts.by) {
    case "one":
      return [{ by: "one" }];
    case "source": {
      const source = sources[parts.source];
      const splits = source ? splitsOf(source, settings.splitBytes) : [];
      return splits.map((split) => ({ by: "source", split }));
    }
    case "partition":
      return partitionSlices(branch, settings, facts);
    case "pack": {
      const { packs = 1, bytes = 0 } = facts.get(parts.stage) ?? {};
      const each = Math.max(1, Math.floor(settings.reduceBytes / Math.max(1, bytes / packs)));
      return Array.from({ length: Math.ceil(packs / each) }, (_, i) => ({
        by: "pack",
        from: i * each,
        to: Math.min(packs, (i + 1) * each),
      }));
    }
    case "range":
      return rangeSlices(parts.stage, settings, facts);
  }
}

/** Which of a stage's packs a task reads; undefined: all of them. */
export function packRange(slice: Slice, stage: string): Omit<PackRange, "stage"> | undefined {
  if (slice.by === "pack") return slice;
  return slice.by === "partition" && slice.of?.stage === stage ? slice.of : undefined;
}

/** Small neighbours are put together and large partitions are split, by what was really written. */
function partitionSlices(branch: Branch, { reduceBytes }: CutSettings, facts: Facts): readonly Slice[] {
  const bytes = partitionBytes(branch, facts);
  const slices: PartitionSlice[] = [];
  let from = 0;
  let sum = 0;
  for (const [i, size] of bytes.entries()) {
    if (i > from && sum + size > reduceBytes) {
      slices.push({ by: "partition", from, to: i });
      from = i;
      sum = 0;
    }
    sum += size;
  }
  slices.push({ by: "partition", from, to: Math.max(bytes.length, from + 1) });
  return slices.flatMap((slice) => splitSlices(slice, branch, reduceBytes, facts));
}

function partitionBytes({ inputs }: Branch, facts: Facts): readonly number[] {
  const bytes: number[] = [];
  for (const input of inputs) {
    if (input.from !== "stage" || input.take !== "part") continue;
    const of = facts.get(input.stage)?.partitionBytes ?? [];
    for (const [i, size] of of.entries()) bytes[i] = (bytes[i] ?? 0) + size;
  }
  return bytes;
}

/** A partition of more than this many times what a task should read is split. */
const skewMin = 2;

/** One partition that is too large for a task: its largest side goes to several, which read the other sides whole. */
function splitSlices(slice: PartitionSlice, { parts }: Branch, reduceBytes: number, facts: Facts): readonly Slice[] {
  const splits = parts.by === "partition" ? (parts.splits ?? []) : [];
  if (slice.to - slice.from > 1 || splits.length === 0) return [slice];
  const sizeOf = (stage: string): number => facts.get(stage)?.partitionBytes[slice.from] ?? 0;
  const [largest = ""] = splits.toSorted((a, b) => sizeOf(b) - sizeOf(a));
  const { packs = 1 } = facts.get(largest) ?? {};
  const pieces = Math.min(packs, Math.ceil(sizeOf(largest) / reduceBytes));
  if (sizeOf(largest) <= skewMin * reduceBytes || pieces < 2) return [slice];
  return Array.from({ length: pieces }, (_, i) => ({
    ...slice,
    of: { stage: largest, from: Math.floor((packs * i) / pieces), to: Math.floor((packs * (i + 1)) / pieces) },
  }));
}

/** Keys that are equal are never in two ranges. */
function rangeSlices(stage: string, { reduceBytes, partitions }: CutSettings, facts: Facts): readonly Slice[] {
  const { bytes = 0, cuts = [] } = facts.get(stage) ?? {};
  const rangesMax = partitions > 0 ? partitions : 4_096;
  const wanted = Math.max(1, Math.min(cuts.length + 1, rangesMax, Math.ceil(bytes / reduceBytes)));
  const places = Array.from({ length: wanted - 1 }, (_, i) => cuts[Math.floor(((i + 1) * cuts.length) / wanted)] ?? "");
  const borders = [...new Set(places)].toSorted();
  return [...borders, undefined].map((to, i) => {
    const from = borders[i - 1];
    return { by: "range", ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
  });
}
