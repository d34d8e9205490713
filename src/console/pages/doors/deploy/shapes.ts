/** What the page of a release reads of /v1/deploy/releases. */
export type ShownRelease = {
  readonly job: string;
  readonly service: string;
  readonly sha: string | null;
  readonly phase: string;
  readonly reason: string;
  readonly createdAt: string;
  readonly endedAt: string | null;
  readonly paused: string | null;
  readonly stages: readonly { readonly name: string; readonly phase: string; readonly why: string }[];
  readonly waves: readonly ShownWave[];
  readonly regions: readonly {
    readonly region: string;
    readonly version: number;
    readonly halted: boolean;
    readonly isGoal: boolean;
    readonly wave: number;
    readonly machines: number;
    readonly states: Readonly<Record<string, number>>;
  }[];
};

export type ShownWave = {
  readonly wave: number;
  readonly sharePpm: number;
  readonly state: "waiting" | "running" | "passed" | "failed" | "skipped";
  readonly why: string;
  readonly regions: readonly { readonly region: string; readonly machines: number; readonly running: number }[];
};
