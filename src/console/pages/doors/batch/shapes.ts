/** What the page of a query reads of /v1/batch/queries. */
export type ShownQuery = {
  readonly job: string;
  readonly name: string;
  readonly phase: string;
  readonly ended: boolean;
  readonly tasks: number;
  readonly done: number;
  readonly submittedAt: string;
  readonly endedAt?: string;
  readonly foreseen?: number;
  readonly stages: readonly ShownStage[];
  readonly written?: { readonly folder: string; readonly rows: number };
  readonly failure?: string;
};

export type ShownStage = {
  readonly wave: number;
  readonly about: string;
  readonly id: string;
  readonly tasks: number;
  readonly planned: number;
  readonly running: number;
  readonly again: number;
  readonly twice: number;
  readonly rows: number;
  readonly bytes: number;
  readonly cpuMs: number;
  readonly reused: number;
  readonly skipped: number;
  readonly skew: number;
  readonly spilled: number;
  readonly leftMs?: number;
  readonly why: readonly string[];
};
