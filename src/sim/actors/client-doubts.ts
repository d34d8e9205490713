/**
 * A client that doubts: it submits small jobs to the owner that the partition map names now, and asks for each of them
 * at once where it used to ask. An owner that does not know yet that it is none must not say that there is no such job.
 */
import { isFault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import type { Submit } from "#kernel/model/command.ts";
import type { Replies } from "#kernel/model/reply.ts";
import type { Router, Settled } from "#shard/router/router.ts";
import type { Life } from "#sim/world/machine.ts";

export type DoubtPorts = {
  readonly life: Life;
  readonly random: Random;
  /** Knows nothing yet, and reads the partition map. */
  readonly freshRouter: () => Router;
  /** Believes what was true before. */
  readonly otherRouter: Router;
  readonly small: (name: string) => Submit;
};

const times = 8;
/** Shorter than a router needs to begin to doubt. */
const patienceMs = 900;

export async function doubts(name: string, shard: number, ports: DoubtPorts): Promise<void> {
  const { life, random, freshRouter, otherRouter, small } = ports;
  const trying = async (request: Promise<Settled>): Promise<Settled | undefined> => {
    try {
      return await request;
    } catch (error) {
      if (isFault(error)) return undefined;
      throw error;
    }
  };
  for (let i = 0; i < times; i += 1) {
    await life.clock.sleep(random.below(800));
    const command = { ...small(`${name}-${i}`), requestKey: `doubt-${name}-${i}` };
    const got = await trying(freshRouter().request({ kind: "command", shard, command }, { deadlineMs: 2_000 }));
    if (got?.kind !== "reply") continue;
    const { job } = got.reply as Replies["submit"];
    await trying(
      otherRouter.request({ kind: "query", shard, query: { kind: "job", job } }, { deadlineMs: patienceMs }),
    );
  }
}
