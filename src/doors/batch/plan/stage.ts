/** What a query is cut into: stages of SQL over sources and over what other stages wrote. */
import { createHash } from "node:crypto";
import type { StageMap } from "./map-function.ts";
import type { PlanType } from "./plan-json.ts";
import type { PartitionKey } from "./partitioner.ts";

/** Of a source or of a stage, either all of it or the part that the task stands for. */
export type Input =
  | { readonly name: string; readonly from: "source"; readonly source: number; readonly take: "all" | "part" }
  | {
      readonly name: string;
      readonly from: "stage";
      readonly stage: string;
      readonly take: "all" | "part";
      /** Left out: c0, c1, ... */
      readonly columns?: readonly string[];
    };

/** What the tasks of a branch differ in. */
export type Parts =
  | { readonly by: "one" }
  /** Each reads a piece of one source. */
  | { readonly by: "source"; readonly source: number }
  /**
   * Each reads the same partitions of every stage that it takes a part of. `splits` are stages of which a task may as
   * well read some packs only, beside all packs of the others: nothing in the branch needs equal keys together.
   */
  | { readonly by: "partition"; readonly splits?: readonly string[] }
  /** Each reads some of the packs of one stage. */
  | { readonly by: "pack"; readonly stage: string }
  /** Each reads a range of the order that one stage's rows were written in. */
  | { readonly by: "range"; readonly stage: string };

export type Branch = {
  readonly sql: string;
  readonly inputs: readonly Input[];
  readonly parts: Parts;
  /** Another way to the same columns, for tasks for which `unless` is true. */
  readonly plain?: { readonly unless: string; readonly sql: string };
};

export type Output =
  | { readonly kind: "whole" }
  | { readonly kind: "hash"; readonly keys: readonly PartitionKey[]; readonly partitions: number }
  /** Each pack is in order; `key` is a text of bytes that compares as the order does. */
  | { readonly kind: "sorted"; readonly key: string }
  | { readonly kind: "result" };

export type Stage = {
  /** Of all that decides what it computes: the same work has the same id, in whatever query. */
  readonly id: string;
  /** For people: what it is for. */
  readonly about: string;
  readonly branches: readonly Branch[];
  readonly types: readonly PlanType[];
  readonly output: Output;
  /** A function that gets the rows of its branches; `types` and `output` are of what it returns. */
  readonly map?: StageMap;
};

/** What is known of a stage that has ended. */
export type StageFacts = {
  readonly rows: number;
  readonly bytes: number;
  /** Bytes by partition, roughly; empty where there are none. */
  readonly partitionBytes: readonly number[];
  readonly packs: number;
  /** In order: places at which its rows may be cut into ranges of about the same size, as hex. */
  readonly cuts: readonly string[];
};

export type Facts = ReadonlyMap<string, StageFacts>;

export function stageOf(stage: Omit<Stage, "id">, sourceIds: readonly string[]): Stage {
  const { branches, types, output, map } = stage;
  const inputs = branches.map((branch) =>
    branch.inputs.map((input) =>
      input.from === "source" ? [input.name, sourceIds[input.source], input.take] : [input.name, input.take],
    ),
  );
  return { ...stage, id: digestOf({ version: 1, branches, inputs, types, output, ...(map && { map }) }) };
}

/** 24 hex digits: 96 bits are enough to tell all stages of all queries apart. */
export const digestOf = (value: unknown): string =>
  createHash("sha256").update(canonicalText(value)).digest("hex").slice(0, 24);

/** JSON with the keys of every object in order; bigints as they are written. */
export const canonicalText = (value: unknown): string =>
  JSON.stringify(value, (_key, one: unknown) => {
    if (typeof one === "bigint") return `${one}n`;
    if (typeof one !== "object" || one === null || Array.isArray(one)) return one;
    return Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });

export const stagesNeeded = ({ branches }: Stage): readonly string[] => [
  ...new Set(branches.flatMap(({ inputs }) => inputs.flatMap((one) => (one.from === "stage" ? [one.stage] : [])))),
];
