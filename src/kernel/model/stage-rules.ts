/** What holds for a stage: what its plan decided, else what its spec says. */
import type { Stage } from "./entities.ts";

export const failFastOf = ({ planned, shape }: Stage): boolean => planned?.decides.failFast ?? shape.failFast;
export const mayFailOf = ({ planned, shape }: Stage): boolean => planned?.decides.mayFail ?? shape.mayFail;
export const parallelMaxOf = ({ planned, shape }: Stage): number => planned?.decides.parallelMax ?? shape.parallelMax;
