/** What is said between a node and its engines: one request at a time, each in a database of its own. */

import type { CutWish, TextCuts, TextPiece } from "./text-cuts.ts";

export type EngineRequest = {
  readonly id: number;
  /** The only files that its statements can read or write. */
  readonly paths: readonly string[];
  /** The same for all files below these. */
  readonly folders?: readonly string[];
  /** For what does not fit into memory; gone when the request has ended. */
  readonly spillFolder: string;
  readonly memoryBytes: number;
  readonly spillBytes: number;
  /** SET statements that are run before the configuration is locked. */
  readonly settings: readonly string[];
  /** Written before the first statement. */
  readonly pieces?: readonly TextPiece[];
  readonly statements: readonly EngineStatement[];
  /** A file whose digest is wanted once all statements have run. */
  readonly digestOf?: string;
  /** Text files of which is wanted where they may be cut. */
  readonly cutsOf?: readonly CutWish[];
};

export type EngineStatement = {
  readonly sql: string;
  /** Run instead where the first value of this query is true. */
  readonly other?: { readonly unless: string; readonly sql: string };
  /** How many rows of its result are wanted; left out: none. */
  readonly rowsMax?: number;
  /** Writes the result there: a line for each batch of rows, with a list of values for each column. */
  readonly batchesTo?: { readonly path: string; readonly rows: number };
};

/** Values as JSON writes them; numbers that may not fit into a double are texts. */
export type EngineRow = readonly unknown[];

export type EngineAnswer =
  | {
      readonly id: number;
      readonly ok: true;
      /** By statement; empty where none were wanted. */
      readonly rows: readonly (readonly EngineRow[])[];
      readonly digest?: string;
      readonly cuts?: readonly TextCuts[];
      readonly cpuMs: number;
      /** The most that was in the spill folder at once, as it was looked at now and then. */
      readonly spilledBytes: number;
    }
  | { readonly id: number; readonly ok: false; readonly why: EngineFailure; readonly message: string };

export type EngineFailure = "query" | "out-of-memory" | "no-space" | "interrupted";

export type ToEngine = { readonly do: "run"; readonly request: EngineRequest } | { readonly do: "interrupt" };
