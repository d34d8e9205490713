/** Where nodes tell each other which actions they run; this node's own desk is reached without the network. */
import { z } from "zod";
import { Fault } from "#base/fault.ts";
import { hash32 } from "#base/random.ts";
import type { Peer, Peers } from "#door/ports.ts";
import type { Desk, DeskAnswer } from "#doors/build/execute/flight-desk.ts";
import { defaultLimits } from "#kernel/model/limits.ts";

const name = z.string().min(1).max(500);
const Digests = z.array(z.string().max(200)).max(defaultLimits.digestsMax);
const payload = z.string().max(defaultLimits.resultBytesMax);
const Shared = z.object({ payload, digests: Digests, isForCache: z.boolean() });
const waitMs = z.number().min(0).max(60_000);
const Entering = z.object({ key: name, runner: name, waitMs, takesEnded: z.boolean() });
const Ending = z.object({ key: name, runner: name, shared: Shared.optional() });
const Answer = z.union([
  z.object({ kind: z.enum(["yours", "ended", "busy"]) }),
  z.object({ kind: z.literal("shared"), shared: Shared }),
]);

const enter = "flight.enter";
const end = "flight.end";

/** Calls that a node serves for others. */
export const flightCalls = (desk: Desk) => ({
  [enter]: async (body: unknown, signal: AbortSignal): Promise<DeskAnswer> =>
    await desk.enter(read(Entering, body), signal),
  [end]: async (body: unknown): Promise<null> => {
    const { key, runner, shared } = read(Ending, body);
    await desk.end(key, runner, shared);
    return null;
  },
});

function read<T>(schema: z.ZodType<T>, body: unknown): T {
  const question = schema.safeParse(body);
  if (!question.success) throw new Fault("invalid", "share a run", { why: "the request is malformed" });
  return question.data;
}

/** Each key is assigned to one of the live nodes: all nodes with the same view choose the same one. */
export function desks(
  own: { readonly name: string; readonly desk: Desk },
  peers: Pick<Peers, "call"> & { nodes(): readonly Omit<Peer, "facts">[] },
): (key: string) => Desk {
  return (key) => {
    let first: { readonly node: string; readonly address: string; readonly rank: number } | undefined;
    for (const { node, alive, address } of peers.nodes()) {
      const rank = hash32(`${key} ${node}`);
      if (alive && address !== "" && (first === undefined || rank > first.rank)) first = { node, address, rank };
    }
    return first === undefined || first.node === own.name ? own.desk : deskAt(first.address, peers);
  };
}

/** How long to wait for an answer that no caller depends on. */
const endMsMax = 5_000;

const deskAt = (address: string, peers: Pick<Peers, "call">): Desk => ({
  enter: async (question, signal) => Answer.parse(await peers.call(address, enter, question, signal)),
  end: async (key, runner, shared) =>
    void (await peers.call(address, end, { key, runner, shared }, AbortSignal.timeout(endMsMax))),
});
