import { ciLint } from "./lint.ts";
import { ciAttempts, ciRunners } from "./lists.ts";
import { ciLogs, ciWatch } from "./look.ts";
import { ciRun } from "./run.ts";
import { ciApprove, ciDeployments, ciEnvironment, ciReject } from "./environments.ts";
import { ciSearch } from "./search.ts";
import { ciSecret } from "./secrets.ts";
import { ciHook, ciVar, ciWorkflows } from "./settings.ts";
import { ciArtifacts, ciExport } from "./export.ts";
import { ciReport, ciTests } from "./tests.ts";
import { ciAdd, ciCancel, ciDispatch, ciList, ciRerun } from "./runs.ts";

export const ciCommands = [
  ciRun,
  ciLint,
  ciAdd,
  ciDispatch,
  ciList,
  ciWatch,
  ciAttempts,
  ciRunners,
  ciLogs,
  ciSearch,
  ciCancel,
  ciRerun,
  ciWorkflows,
  ciHook,
  ciVar,
  ciSecret,
  ciEnvironment,
  ciApprove,
  ciReject,
  ciDeployments,
  ciTests,
  ciReport,
  ciExport,
  ciArtifacts,
] as const;
