/** What the keeper needs from the node around it. */
import type { Clock } from "#base/clock.ts";
import type { ShardId } from "#base/ids.ts";
import type { Random } from "#base/random.ts";
import type { NodeId, NodeRow } from "#journal/journal.ts";
import type { Hosting, LossReason } from "#shard/host/shard.ts";
import type { KeeperJournal } from "./timeouts.ts";
import type { Replay } from "./replay.ts";
import type { KeeperSettings } from "./settings.ts";
import type { Turns } from "./turns.ts";
import type { StoreClocks } from "#shard/host/kernel-clock.ts";
import type { ShardRequest, ShardResponse } from "#shard/transport/protocol.ts";

export type KeeperPorts = {
  readonly node: NodeId;
  readonly clock: Clock;
  readonly storeClocks: StoreClocks;
  readonly journal: KeeperJournal;
  readonly settings: KeeperSettings;
  readonly random: Random;
  /** The node's row as it announces itself, without its state, which the keeper adds. */
  readonly row: () => Omit<NodeRow, "state">;
  readonly host: {
    adopt(hosting: Omit<Hosting, "keepsHistory">, replay: Replay): Promise<void>;
    drain(shard: ShardId): Promise<void>;
    drop(shard: ShardId, why: LossReason, hint?: string): void;
  };
  readonly replay: (shard: ShardId) => Promise<Replay>;
  /** Schedules the reading of logs. */
  readonly turns: Turns;
  /** Sends a request to another node; absent where there is none. */
  readonly send?: ((to: string, request: ShardRequest, timeoutMs: number) => Promise<ShardResponse>) | undefined;
  /** Shards that are to have a node of their own, and which; left out: none. */
  readonly isolated?: (() => ReadonlyMap<ShardId, NodeId>) | undefined;
  readonly report: (doing: string, error: unknown) => void;
};
