/** All machines of the cluster, from the desks of all nodes. */
import type { Peers } from "#door/ports.ts";
import { censusOf, type Census, type CensusQuestion, type Counted } from "./census.ts";
import type { FindQuestion, FleetDesk } from "./desk.ts";
import { mergePages, type Page, type PageQuestion } from "./page.ts";
import type { Cell, SnapshotQuestion } from "./snapshots.ts";
import { addUp, namesAway, type Known, type Standee, type Tally, type TallyQuestion } from "./tally.ts";

export const pageMethod = "deploy.page";
export const countMethod = "deploy.count";
export const findMethod = "deploy.find";
export const wakeMethod = "deploy.wake";
export const tallyMethod = "deploy.tally";
export const heldMethod = "deploy.held";
export const snapshotMethod = "deploy.snapshot";

const answerMsMax = 5_000;
/** Writing documents takes longer than counting. */
const snapshotMsMax = 30_000;

export type FleetCounts = ReturnType<typeof addUp>;

export type Fleet = {
  page(question: PageQuestion): Promise<{ readonly machines: readonly Known[]; readonly next: string | null }>;
  census(question: CensusQuestion): Promise<Census>;
  machine(tenant: string, name: string): Promise<Known | undefined>;
  /** The machines of a wave, counted where they are attached. */
  tally(question: TallyQuestion): Promise<FleetCounts>;
  /** Has every node write down what it knows of its machines, in cells. */
  snapshots(question: SnapshotQuestion): Promise<readonly Cell[]>;
};

export type FleetPorts = {
  readonly node: string;
  readonly desk: Pick<FleetDesk, "page" | "count" | "find" | "tally" | "held">;
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
  const find = async (question: FindQuestion): Promise<readonly Known[]> =>
    question.names.length === 0
      ? []
      : [...desk.find(question), ...(await others<readonly Known[]>(findMethod, question)).flat()];
  const heldNames = async (question: FindQuestion): Promise<ReadonlySet<string>> =>
    new Set((await find(question)).filter(({ isHeld }) => isHeld).map(({ machine }) => machine));
  return {
    async page(question) {
      const { tenant, limit } = question;
      const pages = [desk.page(question), ...(await others<Page>(pageMethod, question))];
      const { machines, next } = mergePages(pages, limit);
      // A node that has only heard of a machine may show what was true before it moved (PG2).
      const names = machines.filter(({ isHeld }) => !isHeld).map(({ machine }) => machine);
      const held = await heldNames({ tenant, names });
      return { machines: machines.filter((one) => one.isHeld || !held.has(one.machine)), next };
    },
    async census(question) {
      const all = [desk.count(question), ...(await others<Counted>(countMethod, question))];
      const names = [...new Set(all.flatMap(({ away }) => away.map(({ machine }) => machine)))];
      const held = all.length === 1 ? new Set<string>() : await heldNames({ tenant: question.tenant, names });
      return censusOf(all, held, question);
    },
    async machine(tenant, name) {
      const found = await find({ tenant, names: [name] });
      return found.toSorted((a, b) => Number(b.isHeld) - Number(a.isHeld) || a.agoMs - b.agoMs)[0];
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
