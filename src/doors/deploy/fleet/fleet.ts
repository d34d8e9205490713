/** All machines of the cluster, from the desks of all nodes. */
import type { Peers } from "#door/ports.ts";
import type { FleetDesk, Machine, Seen } from "./desk.ts";

export const seenMethod = "deploy.machines";
export const wakeMethod = "deploy.wake";

const answerMsMax = 5_000;

export type Fleet = {
  /** A machine that moved between nodes is listed once, as the node saw it that heard of it last. */
  machines(tenant: string): Promise<readonly Seen[]>;
};

export function fleetOf(node: string, desk: FleetDesk, peers: Peers): Fleet {
  const others = async (): Promise<readonly Seen[]> => {
    const calls = peers
      .nodes()
      .filter((peer) => peer.node !== node && peer.alive)
      .map((peer) => peers.call(peer.address, seenMethod, {}, AbortSignal.timeout(answerMsMax)));
    const answers = await Promise.allSettled(calls);
    return answers.flatMap((answer) => (answer.status === "fulfilled" ? (answer.value as readonly Seen[]) : []));
  };
  return {
    async machines(tenant) {
      const newest = new Map<string, Seen>();
      for (const seen of [...desk.seen(), ...(await others())]) {
        if (seen.tenant !== tenant) continue;
        const known = newest.get(seen.machine);
        if (!known || lastAgoMs(seen) < lastAgoMs(known)) newest.set(seen.machine, seen);
      }
      return [...newest.values()].toSorted((a, b) => (a.machine < b.machine ? -1 : 1));
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
