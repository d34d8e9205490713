/** The protocol's timing: memberlist's own three profiles, so that a mixed fleet uses the same intervals. */

export type MeshTimes = {
  /** Between two probes, each of another member. */
  readonly probeIntervalMs: number;
  /** How long a direct ping may take before others are asked. */
  readonly probeTimeoutMs: number;
  readonly indirectChecks: number;
  readonly gossipIntervalMs: number;
  readonly gossipNodes: number;
  /** How long gossip is still sent to a dead member, and its incarnation remembered. */
  readonly gossipToDeadMs: number;
  readonly pushPullIntervalMs: number;
  readonly streamTimeoutMs: number;
  /** A message is sent this factor times the logarithm of the number of members. */
  readonly retransmitMult: number;
  readonly suspicionMult: number;
  /** An unconfirmed suspicion lasts this many times as long. */
  readonly suspicionMaxTimeoutMult: number;
  /** An unhealthy node takes at most this many times as long before it suspects another. */
  readonly healthMax: number;
  /** When a dead member's name may come back from another address. */
  readonly deadReclaimMs: number;
  /** How often a failed member is tried again. */
  readonly reconnectIntervalMs: number;
  /** How long a failed or left member is remembered. */
  readonly departedKeptMs: number;
  /** The minimal time between two announcements of changed tags. */
  readonly metaIntervalMs: number;
  /** How long a leave waits for each of its two messages to be sent, and then for them to spread. */
  readonly leaveBroadcastMs: number;
  readonly leavePropagateMs: number;
};

const lan: MeshTimes = {
  probeIntervalMs: 1_000,
  probeTimeoutMs: 500,
  indirectChecks: 3,
  gossipIntervalMs: 200,
  gossipNodes: 3,
  gossipToDeadMs: 30_000,
  pushPullIntervalMs: 30_000,
  streamTimeoutMs: 10_000,
  retransmitMult: 4,
  suspicionMult: 4,
  suspicionMaxTimeoutMult: 6,
  healthMax: 8,
  deadReclaimMs: 30_000,
  reconnectIntervalMs: 30_000,
  departedKeptMs: 24 * 3_600_000,
  metaIntervalMs: 1_000,
  leaveBroadcastMs: 5_000,
  leavePropagateMs: 1_000,
};

export const profiles = {
  lan,
  wan: {
    ...lan,
    probeIntervalMs: 5_000,
    probeTimeoutMs: 3_000,
    gossipIntervalMs: 500,
    gossipNodes: 4,
    gossipToDeadMs: 60_000,
    pushPullIntervalMs: 60_000,
    streamTimeoutMs: 30_000,
    suspicionMult: 6,
    leavePropagateMs: 3_000,
  },
  local: {
    ...lan,
    probeTimeoutMs: 200,
    indirectChecks: 1,
    gossipIntervalMs: 100,
    gossipToDeadMs: 15_000,
    pushPullIntervalMs: 15_000,
    streamTimeoutMs: 1_000,
    retransmitMult: 2,
    suspicionMult: 3,
    reconnectIntervalMs: 10_000,
    leaveBroadcastMs: 2_000,
    leavePropagateMs: 300,
  },
} as const satisfies Record<string, MeshTimes>;

export const profileNames = ["lan", "wan", "local"] as const satisfies readonly (keyof typeof profiles)[];
export type ProfileName = (typeof profileNames)[number];

/** From so many members on, full states are exchanged less often. */
const pushPullScaledFrom = 32;

export function pushPullDelayMs({ pushPullIntervalMs }: MeshTimes, members: number): number {
  if (members <= pushPullScaledFrom) return pushPullIntervalMs;
  return pushPullIntervalMs * (Math.ceil(Math.log2(members / pushPullScaledFrom)) + 1);
}

export function retransmitsMax({ retransmitMult }: MeshTimes, members: number): number {
  return retransmitMult * Math.ceil(Math.log10(members + 1));
}
