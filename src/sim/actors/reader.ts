/**
 * A reader of the event feed, as a client is one: follows it at some node, with a cursor for when that node is gone,
 * and now and then begins again at an older cursor. What it is given is for the court.
 */
import type { Random } from "#base/random.ts";
import { isFault } from "#base/fault.ts";
import type { FeedNotes } from "#sim/check/feed.ts";
import type { DeskCalls } from "#sim/world/desks.ts";
import type { Life } from "#sim/world/machine.ts";
import { addressOf } from "#sim/world/network.ts";

export type ReaderPorts = {
  readonly life: Life;
  readonly random: Random;
  readonly desks: DeskCalls;
  readonly notes: FeedNotes;
  readonly injected: (kind: string) => void;
};

export type ReaderHabits = {
  readonly nodes: readonly string[];
  /** Of one tenant, or of all. */
  readonly tenant: string | undefined;
  readonly from: "now" | "oldest";
};

export function startReader({ life, random, desks, notes, injected }: ReaderPorts, habits: ReaderHabits): void {
  const { nodes, tenant, from } = habits;

  async function follow(): Promise<void> {
    const abort = new AbortController();
    const cancel = life.clock.after(random.below(random.pick([1_000, 60_000])), () => abort.abort(seenEnough));
    const { cursor } = notes;
    const start = cursor === undefined ? from : { cursor };
    const request = { filter: { tenant }, start, itemsMax: random.pick([1, 3, 200]) };
    try {
      for await (const page of desks.readFeed(life, addressOf(random.pick(nodes)), request, abort.signal))
        notes.take(page);
    } finally {
      cancel();
    }
  }

  async function run(): Promise<void> {
    for (;;) {
      await follow().catch((error: unknown) => {
        if (error !== seenEnough && !isFault(error)) throw error;
      });
      if (random.chance(0.2) && notes.goBack(random)) injected("reader-goes-back");
      await life.clock.sleep(random.below(1_000));
    }
  }
  void run();
}

const seenEnough = new Error("seen enough");
