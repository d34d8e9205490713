import { agentRun } from "./agent-run.ts";
import { deployRelease } from "./release.ts";
import { deployApprove, deployHalt, deployMachines, deployResume, deployRollback, deployStatus } from "./services.ts";

export const deployCommands = [
  deployRelease,
  deployStatus,
  deployMachines,
  deployApprove,
  deployRollback,
  deployHalt,
  deployResume,
  agentRun,
] as const;
