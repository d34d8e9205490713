import type { Random } from "#base/random.ts";
import type { Evidence } from "./check.ts";
import type { Cluster, ClusterPlan } from "./cluster.ts";
import type { Figures } from "./figures.ts";
import type { Traffic, TrafficPlan } from "./traffic.ts";

/**
 * One kind of failure, as data: which processes there are, what happens to them in a round, and what must hold
 * afterwards.
 */
export type Scenario = {
  readonly name: string;
  readonly about: string;
  readonly rounds: { readonly full: number; readonly smoke: number };
  readonly cluster: ClusterPlan;
  readonly smokeCluster?: Partial<ClusterPlan>;
  readonly traffic: TrafficPlan | undefined;
  /** Before the first round. */
  readonly prepare?: (run: Run) => Promise<void>;
  readonly round: (run: Run, round: number) => Promise<Round>;
  /** What this scenario checks besides the common checks. */
  readonly judge?: (evidence: Evidence) => readonly string[];
  /** What is counted over all rounds. */
  readonly sum: (rounds: readonly Round[], evidence: Evidence) => Figures;
};

export type Round = {
  /** What was done, for people. */
  readonly what: string;
  /** How long each affected shard took to answer again. */
  readonly recoveryMs: readonly number[];
  readonly figures?: Figures;
  readonly violations?: readonly string[];
};

export type Run = {
  readonly cluster: Cluster;
  readonly traffic: Traffic;
  readonly random: Random;
  readonly say: (line: string) => void;
};
