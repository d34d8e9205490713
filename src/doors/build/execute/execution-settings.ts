/** The operator's settings for executing actions. */

export type ExecutionSettings = {
  /** For actions without a timeout. */
  readonly timeoutMsDefault: number;
  /** Actions that ask for more are refused. */
  readonly timeoutMsMax: number;
  /** How long an action may wait for a worker. */
  readonly queueMs: number;
  /** How long an action waits if no present worker could run it: one may be starting. */
  readonly noWorkerMs: number;
  /** Pools that may have no worker at times: their actions wait as long as for a busy worker. */
  readonly pools: readonly string[];
  /** How long an action goes on after its last client has left. */
  readonly leaveGraceMs: number;
  /** Names of platform properties for which workers have labels of the same name. */
  readonly properties: readonly string[];
  /** Names of platform properties that are ignored. */
  readonly ignoredProperties: readonly string[];
  /** Memory limit of an action that does not ask for one; 0: no limit. */
  readonly memoryBytesDefault: number;
};

const minute = 60_000;

export const executionSettingsDefault: ExecutionSettings = {
  timeoutMsDefault: 60 * minute,
  timeoutMsMax: 24 * 60 * minute,
  queueMs: 30 * minute,
  noWorkerMs: 20_000,
  pools: [],
  leaveGraceMs: 30_000,
  properties: [],
  ignoredProperties: [],
  memoryBytesDefault: 0,
};
