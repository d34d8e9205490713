import type { Report } from "./report.ts";

export type BenchOptions = {
  /** A few seconds, to see that it runs: the figures mean nothing. */
  readonly smoke: boolean;
  /** Libraries too, installed on demand. */
  readonly peers: boolean;
  /** From other processes, where the suite can do so. */
  readonly remote: boolean;
  /** One part of the suite; left out: all. */
  readonly only?: string | undefined;
};

export type Suite = {
  readonly name: string;
  readonly about: string;
  readonly notMeasured: readonly string[];
  run(report: Report, options: BenchOptions): Promise<void>;
};
