/**
 * What happens to a fleet, turn by turn, and what a build must have seen of it. Pure.
 *
 * The first turns are chosen so that no build of their size can end before them. Until the outage, workers are
 * suspended for fewer seconds of actions than the build has; and during it nothing ends, because nothing can be logged.
 */
import type { Random } from "#base/random.ts";

export type Standing = {
  readonly name: string;
  /** How many of the build's connections it has. */
  readonly carried: number;
};

export type TurnPorts = {
  readonly members: readonly Standing[];
  readonly random: Random;
  /** Of a shard's owner. */
  readonly leaseMs: number;
  readonly wants: Wants;
};

export type Wants = {
  /** Long enough for everything; a smaller build sees no long suspension, and the outage at once. */
  readonly isFullSize: boolean;
  /** Whether nodes have networks that can be cut. */
  readonly cuts: boolean;
};

export type Turn = {
  readonly kill: { readonly victim: string; readonly awayMs: number };
  /** Begun after the kill. */
  readonly stop: { readonly victim: string; readonly forMs: number } | undefined;
  /** Of the database; begun after the stop. */
  readonly outage: { readonly forMs: number } | undefined;
  /** Begun when all of that is over. */
  readonly cut: { readonly victim: string; readonly forMs: number } | undefined;
};

/** How long an action's claim is valid without renewal: `templateOf` of the build door. */
const claimMs = 10_000;
const slackMs = 3_000;

export function planTurn(turn: number, { members, random, leaseMs, wants }: TurnPorts): Turn {
  const victim = turn === 0 ? mostCarried(members) : random.pick(members).name;
  const other = random.pick(members.filter(({ name }) => name !== victim)).name;
  // Its own shards, and those of the killed node, get another owner first, who gives each claim a full new lease.
  const longMs = leaseMs + claimMs + slackMs;
  const stopMs = turn === 0 && wants.isFullSize ? longMs : leaseMs * 2;
  // Not during a long suspension: claims do not expire while there is no database.
  const outageTurn = wants.isFullSize ? 1 : 0;
  return {
    // Back at once, or after the others have taken over.
    kill: { victim, awayMs: random.chance(0.5) ? 0 : leaseMs * 1.5 },
    stop: turn % 2 === 0 ? { victim: other, forMs: stopMs } : undefined,
    outage: turn === outageTurn ? { forMs: leaseMs * 3 } : undefined,
    cut: wants.cuts && turn >= outageTurn ? { victim: other, forMs: leaseMs * 2 } : undefined,
  };
}

const mostCarried = (members: readonly Standing[]): string =>
  members.toSorted((a, b) => b.carried - a.carried)[0]?.name ?? "";

export type Seen = {
  readonly kills: number;
  readonly killsCarried: number;
  readonly stops: number;
  readonly outages: number;
  readonly cuts: number;
  readonly claimsLost: number;
};

/** What a build should have seen, and did not. */
export function missed(seen: Seen, { isFullSize, cuts }: Wants): readonly string[] {
  const always = ["kills", "killsCarried", "stops", "outages"] as const;
  const wanted = [...always, ...(cuts ? ["cuts" as const] : []), ...(isFullSize ? ["claimsLost" as const] : [])];
  return wanted.filter((what) => seen[what] === 0);
}
