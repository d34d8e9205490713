import { auditExport } from "./audit/export.ts";
import { auditList } from "./audit/list.ts";
import { auditVerify } from "./audit/verify.ts";
import { artifactGet } from "./artifact/get.ts";
import { artifactList } from "./artifact/list.ts";
import { artifactPut } from "./artifact/put.ts";
import { bench } from "./bench.ts";
import type { Command } from "#door/command.ts";
import type { Door } from "#door/door.ts";
import { effectDecide, effectList, effectRemove } from "./effect/people.ts";
import { effectRun } from "./effect/run.ts";
import { effectBegin, effectCommit, effectUndo } from "./effect/tell.ts";
import { drain } from "./cluster/drain.ts";
import { historyRebuild } from "./cluster/history-rebuild.ts";
import { issuerRotate } from "./issuer/rotate.ts";
import { jobCancel } from "./job/cancel.ts";
import { jobResults } from "./job/results.ts";
import { jobRerun } from "./job/rerun.ts";
import { jobLogs } from "./job/logs.ts";
import { jobList } from "./job/list.ts";
import { jobShow } from "./job/show.ts";
import { jobSignal } from "./job/signal.ts";
import { jobSubmit } from "./job/submit.ts";
import { jobWatch } from "./job/watch.ts";
import { jobWhy } from "./job/why.ts";
import { login } from "./cluster/login.ts";
import { nodes } from "./cluster/nodes.ts";
import { peers } from "./cluster/peers.ts";
import { webhookAdd } from "./webhook/add.ts";
import { webhookDelete, webhookList, webhookRedeliver, webhookShow, webhookTest } from "./webhook/one.ts";
import { events } from "#cli/events/events.ts";
import { scheduleAdd } from "./schedule/add.ts";
import { kept } from "./kept.ts";
import { poolList } from "./pool/list.ts";
import { poolShow } from "./pool/show.ts";
import { usage } from "./usage.ts";
import { scheduleList } from "./schedule/list.ts";
import { scheduleNext, schedulePause, scheduleRemove, scheduleResume, scheduleShow } from "./schedule/one.ts";
import { secretDelete } from "./secret/delete.ts";
import { secretList } from "./secret/list.ts";
import { secretNewKey } from "./secret/new-key.ts";
import { secretRotate } from "./secret/rotate.ts";
import { secretSet } from "./secret/set.ts";
import { shards } from "./cluster/shards.ts";
import { shardsIsolate, shardsRelease } from "./cluster/shards-isolate.ts";
import { checkpoint } from "./checkpoint.ts";
import { step } from "./step.ts";
import { tenantSet } from "./cluster/tenant-set.ts";
import { up } from "./up.ts";
import { why } from "./why.ts";
import { runner } from "./worker/runner.ts";
import { runnerToken } from "./worker/runner-token.ts";
import { worker } from "./worker/worker.ts";
import { workers } from "./worker/list.ts";
import { workerRemove } from "./worker/remove.ts";
import { workerRevoke } from "./worker/revoke.ts";
import { workerToken } from "./worker/token.ts";
import { workerTokens } from "./worker/tokens.ts";

/** Before the commands of doors, and behind them; `help` and `version` are about the whole table. */
const first: readonly Command[] = [
  up,
  jobSubmit,
  jobList,
  jobShow,
  jobWatch,
  jobLogs,
  jobResults,
  jobCancel,
  jobRerun,
  jobWhy,
  jobSignal,
];
const secrets = [secretSet, secretList, secretDelete, secretRotate, secretNewKey] as const;
const ofWorkers = [runner, runnerToken, workerToken, workerTokens, workerRevoke, workers, workerRemove] as const;
const ofPools = [poolList, poolShow] as const;
const ofTasks = [artifactPut, artifactGet, artifactList, step, checkpoint] as const;
const webhooks = [webhookAdd, webhookList, webhookShow, webhookDelete, webhookTest, webhookRedeliver] as const;
const schedules = [scheduleAdd, scheduleList, scheduleShow, scheduleNext] as const;
const scheduleChanges = [schedulePause, scheduleResume, scheduleRemove] as const;
const effects = [effectRun, effectBegin, effectCommit, effectUndo, effectList, effectDecide, effectRemove] as const;
const last: readonly Command[] = [
  why,
  ...ofTasks,
  events,
  ...webhooks,
  ...schedules,
  ...scheduleChanges,
  ...effects,
  auditList,
  auditExport,
  auditVerify,
  ...secrets,
  issuerRotate,
  kept,
  usage,
  tenantSet,
  worker,
  ...ofWorkers,
  ...ofPools,
  nodes,
  login,
  peers,
  shards,
  shardsIsolate,
  shardsRelease,
  drain,
  historyRebuild,
  bench,
];

/** Every command of a program with these doors. */
export const tableOf = (of: readonly Door[]): readonly Command[] => [
  ...first,
  ...of.flatMap(({ commands }) => commands),
  ...last,
];

/** The commands that this line may mean: doors are not even loaded for a command that is not theirs. */
export async function tableFor(args: readonly string[]): Promise<readonly Command[]> {
  const own = [...first, ...last];
  const isOwn = own.some(({ name }) => name.split(" ").every((word, i) => args[i] === word));
  return isOwn || isVersion(args[0]) ? own : await wholeTable();
}

const isVersion = (word: string | undefined): boolean => word !== undefined && /^(version|--version|-v)$/.test(word);

export const wholeTable = async (): Promise<readonly Command[]> => tableOf((await import("#app/doors.ts")).doors);
