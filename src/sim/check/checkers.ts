/** Everything that is checked, each under the number of the invariant that it stands for. */
import { endsAreTold, numbersOnce } from "./family.ts";
import { feedIsOwed } from "./feed.ts";
import { jobsEnd, quotaKept, tenantsServed } from "./end.ts";
import { joinsWhatIsUnderWay } from "./joins.ts";
import { claimsForReady, commitsUnderGuard, keysBindOnce, locksOneAtATime, oneResult } from "./log.ts";
import { requeuesOnce, stagesInOrder, timeIsFair } from "./log.ts";
import { manifestsAreWhole } from "./manifest.ts";
import { committedIsPublished } from "./publish.ts";
import { locksInTheWorld, oneAtATimeOutside } from "./runs.ts";
import { oneJobAnInstant } from "./schedules.ts";
import { brokenAlone, oneOwnerSpeaks, readsAreTrue, saidIsDurable, sameKeySameJob } from "./speech.ts";
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
  numbersOnce,
  endsAreTold,
  manifestsAreWhole,
  feedIsOwed,
  oneJobAnInstant,
];
