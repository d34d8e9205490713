/** Functions of users over batches of rows, as plans know them: code by its digest, columns in and columns out. */
import type { Digest } from "#base/digest.ts";
import type { SourceColumn } from "./source.ts";

export type MapFunction = {
  /** The code: a JavaScript module with all that it imports, or a Python file. */
  readonly module: Digest;
  readonly language: "javascript" | "python";
  /** The name under which the module exports the function. */
  readonly export: string;
  /** Given to each call, as JSON. */
  readonly params: string;
  /** What it returns. */
  readonly schema: readonly SourceColumn[];
  /** How many rows it gets at once, at most. */
  readonly batchRows: number;
  /** How long one call may take. */
  readonly batchMs: number;
  /** How many rows of one task may be left out because the function fails on them; 0: the first one fails the job. */
  readonly skipMax: number;
  /** Whether equal rows give equal results, so that a result may be used again. */
  readonly isDeterministic: boolean;
};

/** How a query, or the part of it below a function, is run. */
export type How =
  | { readonly kind: "stages"; readonly plan: string }
  /** As it is, with tables s0, s1, ... for its sources and m0, m1, ... for functions' results. */
  | { readonly kind: "one"; readonly why: string; readonly sql: string; readonly maps?: readonly number[] };

/** A function and the query whose rows it gets. It may read what the functions before it in the list return. */
export type PlannedMap = {
  readonly name: string;
  readonly function: MapFunction;
  /** The columns of the query, in order. */
  readonly columns: readonly SourceColumn[];
  readonly how: How;
};

/** What a stage needs to know to call it. */
export type StageMap = { readonly function: MapFunction; readonly columns: readonly SourceColumn[] };

/** The planner's tables are called after the place of their function in the list. */
export const mapTable = (index: number): string => `m${index}`;
