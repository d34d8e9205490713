/** All machines of the cluster, from the desks of all nodes. */
import type { Peers } from "#door/ports.ts";
import type { FleetDesk, Machine, Seen } from "./desk.ts";
import type { Cell, SnapshotQuestion } from "./snapshots.ts";
import { addUp, namesAway, type Standee, type Tally, type TallyQuestion } from "./tally.ts";

export const seenMethod = "deploy.machines";
export const wakeMethod = "deploy.wake";
export const tallyMethod = "deploy.tally";
export const heldMethod = "deploy.held";
export const snapshotMethod = "deploy.snapshot";

const answerMsMax = 5_000;
/** Writing documents takes longer than counting. */
const snapshotMsMax = 30_000;

export type FleetCounts = ReturnType<typeof addUp>;

export type Fleet = {
  /** A machine that moved between nodes is listed once, as the node saw it that heard of it last. */
  machines(tenant: string): Promise<readonly Seen[]>;
  /** The machines of a wave, counted where they are attached. */
  tally(question: TallyQuestion): Promise<FleetCounts>;
  /** Has every node write down what it knows of its machines, in cells. */
  snapshots(question: SnapshotQuestion): Promise<readonly Cell[]>;
};

export type FleetPorts = {
  readonly node: string;
  readonly desk: Pick<FleetDesk, "seen" | "tally" | "held">;
  readonly snapshots: { write(question: SnapshotQuestion): Promise<readonly Cell[]> };
  readonly peers: Peers;
};

export function fleetOf({ node, desk, snapshots, peers }: FleetPorts): Fleet {
  const others = async <T>(method: string, body: unknown, msMax = answerMsMax): Promise<readonly T[]> => {
    const calls = peers
      .nodes()
      .filter((peer) => peer.node !== node && peer.alive)
      .map((peer) => peers.call(peer.address, method, body, AbortSignal.timeout(msMax)));
    const answers = await Promise.allSettled(calls);
    return answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value as T] : []));
  };
  return {
    async machines(tenant) {
      const newest = new Map<string, Seen>();
      for (const seen of [...desk.seen(), ...(await others<readonly Seen[]>(seenMethod, {})).flat()]) {
        if (seen.tenant !== tenant) continue;
        const known = newest.get(seen.machine);
        if (!known || lastAgoMs(seen) < lastAgoMs(known)) newest.set(seen.machine, seen);
      }
      return [...newest.values()].toSorted((a, b) => (a.machine < b.machine ? -1 : 1));
    },
    async tally(question) {
      const tallies = [desk.tally(question), ...(await others<Tally>(tallyMethod, question))];
      const names = namesAway(tallies);
      if (names.size === 0 || tallies.length === 1) return addUp(tallies, []);
      const asked = { question, names: [...names] };
      const held = [...desk.held(question, names), ...(await others<readonly Standee[]>(heldMethod, asked)).flat()];
      return addUp(tallies, held);
    },
    async snapshots(question) {
      const mine = await snapshots.write(question);
      return [...mine, ...(await others<readonly Cell[]>(snapshotMethod, question, snapshotMsMax)).flat()];
    },
  };
}

/** Tells this node's desk, and those of all others, that there is a new goal in a region. */
export const waking = (node: string, desk: FleetDesk, peers: Peers) => ({
  wake({ goal: { region } }: { readonly goal: { readonly region: string } }): void {
    desk.wake({ region });
    for (const peer of peers.nodes())
      if (peer.node !== node && peer.alive)
        // One that does not hear it looks by itself a little later.
        void peers.call(peer.address, wakeMethod, { region }, AbortSignal.timeout(answerMsMax)).catch(() => undefined);
  },
});
export type Waking = ReturnType<typeof waking>;

export const isTarget = (
  { region, labels }: Machine,
  targets: { readonly regions: readonly string[]; readonly labels: readonly string[] },
): boolean => targets.regions.includes(region) && targets.labels.every((label) => labels.includes(label));

const lastAgoMs = ({ reports }: Seen): number => Math.min(Infinity, ...reports.map(({ agoMs }) => agoMs));
