import { batch } from "./batch.ts";
import { bench } from "./bench.ts";
import { buildCancel, buildGet, buildList, buildShow, buildWatch } from "./build-look.ts";
import { buildSubmit } from "./build-submit.ts";
import { cacheGet, cachePut } from "./cache-blob.ts";
import { cacheList } from "./cache-list.ts";
import { cacheRevoke } from "./cache-revoke.ts";
import { cacheStat } from "./cache-stat.ts";
import { cacheGc, cacheVerify } from "./cache-upkeep.ts";
import { cacheWhy } from "./cache-why.ts";
import type { Command } from "#door/command.ts";
import { drain } from "./drain.ts";
import { historyRebuild } from "./history-rebuild.ts";
import { jobCancel } from "./job-cancel.ts";
import { jobList } from "./job-list.ts";
import { jobShow } from "./job-show.ts";
import { jobSignal } from "./job-signal.ts";
import { jobSubmit } from "./job-submit.ts";
import { jobWatch } from "./job-watch.ts";
import { jobWhy } from "./job-why.ts";
import { login } from "./login.ts";
import { nodes } from "./nodes.ts";
import { peers } from "./peers.ts";
import { shards } from "./shards.ts";
import { tenantSet } from "./tenant-set.ts";
import { up } from "./up.ts";
import { why } from "./why.ts";

/** Every command but `help` and `version`, which are about this table. */
export const table: readonly Command[] = [
  up,
  jobSubmit,
  jobList,
  jobShow,
  jobWatch,
  jobCancel,
  jobWhy,
  jobSignal,
  buildSubmit,
  buildList,
  buildShow,
  buildWatch,
  buildGet,
  buildCancel,
  ...batch,
  why,
  tenantSet,
  cacheStat,
  cacheList,
  cacheGet,
  cachePut,
  cacheWhy,
  cacheRevoke,
  cacheGc,
  cacheVerify,
  nodes,
  login,
  peers,
  shards,
  drain,
  historyRebuild,
  bench,
];
