import { agentInstall, agentStatus, agentStop } from "./agent-install.ts";
import { agentRun } from "./agent-run.ts";
import { deployCaps } from "./caps.ts";
import { deployKeys, deployRevokeKey, deployRotateKey } from "./keys.ts";
import { deployPin, deployUnpin } from "./pin.ts";
import { deployRelease } from "./release.ts";
import { deployAbort, deployDrift, deployJobs, deployPause, deployPlan } from "./release-control.ts";
import { deployWatch, deployWhy } from "./watch.ts";
import {
  deployApprove,
  deployForget,
  deployHalt,
  deployMachines,
  deployResume,
  deployRollback,
  deployStatus,
} from "./services.ts";

export const deployCommands = [
  deployRelease,
  deployStatus,
  deployWatch,
  deployWhy,
  deployMachines,
  deployForget,
  deployApprove,
  deployRollback,
  deployHalt,
  deployResume,
  deployPlan,
  deployJobs,
  deployPause,
  deployAbort,
  deployDrift,
  deployPin,
  deployUnpin,
  deployCaps,
  deployKeys,
  deployRotateKey,
  deployRevokeKey,
  agentRun,
  agentInstall,
  agentStatus,
  agentStop,
] as const;
