/** What an operator may choose about the execution of actions. */

export type ExecutionSettings = {
  /** For actions that do not say how long they may take. */
  readonly timeoutMsDefault: number;
  /** Actions that ask for more are refused. */
  readonly timeoutMsMax: number;
  /** How long an action may wait for a worker. */
  readonly queueMs: number;
  /** How long an action may wait that no worker could run: some may be starting. */
  readonly noWorkerMs: number;
  /** Pools that may have no worker just now: their actions wait for one as long as for a busy one. */
  readonly pools: readonly string[];
  /** How long an action goes on that nobody waits for any more. */
  readonly leaveGraceMs: number;
  /** Names of platform properties that workers have labels of the same name for. */
  readonly properties: readonly string[];
  /** Names of platform properties that mean nothing here. */
  readonly ignoredProperties: readonly string[];
  /** Of the memory of an action that does not say how much it wants; 0: as much as there is. */
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
