/** Everything that is checked, each under the number of the invariant that it stands for. */
import { jobsEnd, quotaKept, tenantsServed } from "./check-end.ts";
import { joinsWhatIsUnderWay } from "./check-joins.ts";
import { claimsForReady, commitsUnderGuard, keysBindOnce, locksOneAtATime, oneResult } from "./check-log.ts";
import { requeuesOnce, stagesInOrder, timeIsFair } from "./check-log.ts";
import { committedIsPublished } from "./check-publish.ts";
import { locksInTheWorld, oneAtATimeOutside } from "./check-runs.ts";
import { brokenAlone, oneOwnerSpeaks, readsAreTrue, saidIsDurable, sameKeySameJob } from "./check-speech.ts";
import type { Checker } from "./court.ts";

export const checkers: readonly Checker[] = [
  keysBindOnce,
  sameKeySameJob,
  claimsForReady,
  commitsUnderGuard,
  requeuesOnce,
  stagesInOrder,
  oneResult,
  saidIsDurable,
  oneOwnerSpeaks,
  readsAreTrue,
  jobsEnd,
  tenantsServed,
  quotaKept,
  timeIsFair,
  brokenAlone,
  joinsWhatIsUnderWay,
  locksOneAtATime,
  locksInTheWorld,
  oneAtATimeOutside,
  committedIsPublished,
];
