/** What a batch job keeps in the store: its plan, the stages that became of it, and what each stage wrote. */
import type { Digest } from "#base/digest.ts";
import type { Asker } from "./grants/resolve.ts";
import type { How, PlannedMap } from "./plan/map-function.ts";
import type { PlanType } from "./plan/plan-json.ts";
import type { CutSettings } from "./plan/settings.ts";
import type { Source, SourceColumn } from "./plan/source.ts";
import type { Stage } from "./plan/stage.ts";
import type { TaskPart } from "./plan/tasks.ts";

/** Another engine may order, hash and round otherwise: tasks run on the one that they were planned for. */
export const engineName = "duckdb-1.5.5";

export type PlanDocument = {
  readonly version: 1;
  readonly engine: string;
  readonly packs?: PackForm;
  /** As it was given. */
  readonly sql: string;
  readonly columns: readonly SourceColumn[];
  readonly sources: readonly Source[];
  readonly settings: CutSettings;
  readonly how: How;
  /** Functions over batches of rows, in the order in which they may read each other's results. */
  readonly maps?: readonly PlannedMap[];
  /** Whose rights count. Left out by versions that knew operators only. */
  readonly asker?: StoredAsker;
  /** Where the result goes, besides. */
  readonly output?: { readonly folder: string; readonly partitionBy: readonly string[] };
};

/** How packs are compressed where they travel far; left out: lz4, which costs least on one machine. */
export type PackForm = "zstd";

/** The tenant is the job's. */
export type StoredAsker = { readonly isGranted: boolean; readonly folder: string };

export const askerOf = ({ asker }: { readonly asker?: StoredAsker }, tenant: string): Asker => ({
  tenant,
  ...(asker ?? { isGranted: false, folder: "/" }),
});

/** All tasks of a stage share it; they differ in which part they name. */
export type StageDocument = {
  readonly version: 1;
  readonly engine: string;
  readonly packs?: PackForm;
  readonly stage: Stage;
  readonly sources: readonly Source[];
  /** The manifests of the stages that it reads, by their ids. */
  readonly inputs: Readonly<Record<string, StageInput>>;
  readonly parts: readonly TaskPart[];
  readonly asker?: StoredAsker;
};

export type StageInput = {
  readonly manifest: Digest;
  readonly types: readonly PlanType[];
  /** Who wrote the packs of the manifest, in the same order: asked to write them again where they are lost. */
  readonly producers: readonly Producer[];
};

/** In a document: of this generation, or of a later one that has written the same pack. */
export type Producer = { readonly task: string; readonly generation: number };

/** Exactly the packs that a consumer reads: of no other attempt, and of no other generation. */
export type Manifest = {
  readonly version: 1;
  readonly stage: string;
  readonly packs: readonly { readonly digest: Digest; readonly rows: number }[];
};

/** Specs of kernel tasks. */
export type TaskSpec = {
  readonly stage: Digest;
  readonly part: number;
  /** Computed in any case. */
  readonly fresh?: boolean;
};

/** What a task's result says; large things are in the store. */
export type TaskResult = {
  readonly stage: string;
  /** What the stage is for. */
  readonly about: string;
  readonly isResult: boolean;
  readonly part: number;
  readonly pack: Digest;
  readonly rows: number;
  readonly bytes: number;
  /** By partition, rows in 1/255 of the largest, as hex: two digits each. */
  readonly shares: string;
  readonly cuts: readonly string[];
  readonly cpuMs: number;
  /** From the first byte read to the last one written. */
  readonly ms?: number;
  /** What did not fit into memory. */
  readonly spilled?: number;
  /** Rows that a function failed on and that were left out. */
  readonly skipped?: number;
  /** What a function printed, and under which claim. */
  readonly output?: Digest;
  readonly token?: number;
  /** Found, not computed: an earlier task with the same key has written the pack. */
  readonly reused?: boolean;
  /** Why it was computed. */
  readonly why?: string;
  /** The node that wrote the pack. Left out where it was found, and by versions that did not say. */
  readonly at?: string;
  /** What it has read, by stage (standing.ts). Left out by versions that did not say. */
  readonly reads?: Readonly<Record<string, string>>;
  readonly by: Producer;
};

/** What is written to a folder once the query is answered. */
export type CommitDocument = {
  readonly version: 1;
  readonly engine: string;
  /** As the job names it. */
  readonly folder: string;
  readonly asker?: StoredAsker;
  readonly partitionBy: readonly string[];
  readonly columns: readonly SourceColumn[];
  readonly packs: readonly { readonly digest: Digest; readonly rows: number }[];
  readonly producers: readonly Producer[];
};

export type CommitSpec = { readonly commit: Digest };

export type CommitResult = {
  readonly written: {
    readonly folder: string;
    readonly version: string;
    readonly files: number;
    readonly rows: number;
  };
};

/** How a CommitResult begins, and no TaskResult does. */
export const commitPayload = '{"written":';

export const encodeDocument = (document: PlanDocument | StageDocument | Manifest | CommitDocument): Uint8Array =>
  Buffer.from(JSON.stringify(document));

/** Processor time in a TaskResult as it is written; none in one that was found, not computed. */
export function cpuMsIn(payload: string): number | undefined {
  const [, digits] = /"cpuMs":(\d{1,12}(?:\.\d{1,6})?)[,}]/.exec(payload) ?? [];
  return digits === undefined || payload.includes('"reused":true') ? undefined : Number(digits);
}
