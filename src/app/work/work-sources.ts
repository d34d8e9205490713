/** The nodes that a worker hears of work from: its own without the network, the others through it. */
import { z } from "zod";
import { Fault } from "#base/fault.ts";
import type { Node } from "#shard/node.ts";
import type { ReadyShard, FreeSlots } from "#shard/watch/ready-desk.ts";
import type { TcpTransport } from "#shard/transport/tcp.ts";
import type { WorkSource, WorkSources } from "#worker/sources.ts";

const Question = z.object({
  executor: z.string().max(200),
  offers: z.array(z.string().max(300)).max(200),
  free: z.int().min(1).max(1_000_000),
  waitMs: z.number().min(0).max(60_000),
});

const Answer = z.array(z.tuple([z.int().min(0), z.number()])).max(10_000);

const method = "ready";

/** What a node answers to the workers of others. */
export const readyCalls = (node: () => Pick<Node, "ready">) => ({
  [method]: async (body: unknown, signal: AbortSignal): Promise<readonly ReadyShard[]> => {
    const question = Question.safeParse(body);
    if (!question.success) throw new Fault("invalid", "wait for work", { why: "the question makes no sense" });
    const { waitMs, ...room } = question.data;
    return await node().ready.wait(room, waitMs, signal);
  },
});

export function workSources(node: Pick<Node, "ready" | "address" | "keeper">, tcp: TcpTransport): WorkSources {
  const others = new Map<string, WorkSource>();
  const own: WorkSource = { ready: (room, waitMs, signal) => node.ready.wait(room, waitMs, signal) };
  const at = (address: string): WorkSource => {
    let source = others.get(address);
    if (!source) others.set(address, (source = { ready: ask.bind(undefined, tcp, address) }));
    return source;
  };
  return () => {
    const addresses = node.keeper.nodes.filter(({ alive, address }) => alive && address !== "").map((n) => n.address);
    const elsewhere = addresses.filter((address) => address !== node.address);
    for (const address of others.keys()) if (!elsewhere.includes(address)) others.delete(address);
    return new Map([[node.address, own], ...elsewhere.map((address) => [address, at(address)] as const)]);
  };
}

async function ask(tcp: TcpTransport, to: string, room: FreeSlots, waitMs: number, signal: AbortSignal) {
  return Answer.parse(await tcp.call(to, method, { ...room, waitMs }, signal));
}
