/** The nodes that a worker hears about work from: its own directly, the others over the network. */
import { z } from "zod";
import { Fault } from "#base/fault.ts";
import type { Node } from "#shard/node.ts";
import type { ReadyShard } from "#shard/watch/ready-desk.ts";
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

/** Calls that a node serves for workers of other nodes. */
export const readyCalls = (node: () => Pick<Node, "ready">) => ({
  [method]: async (body: unknown, signal: AbortSignal): Promise<readonly ReadyShard[]> => {
    const question = Question.safeParse(body);
    if (!question.success) throw new Fault("invalid", "wait for work", { why: "the request is malformed" });
    const { waitMs, ...room } = question.data;
    return await node().ready.wait(room, waitMs, signal);
  },
});

export function workSources(node: Pick<Node, "ready" | "address" | "keeper">, tcp: TcpTransport): WorkSources {
  const others = new Map<string, WorkSource>();
  const own: WorkSource = { ready: (room, waitMs, signal) => node.ready.wait(room, waitMs, signal) };
  const at = (address: string): WorkSource => {
    let source = others.get(address);
    if (!source) others.set(address, (source = sourceAt(tcp, address)));
    return source;
  };
  return () => {
    const addresses = node.keeper.nodes.filter(({ alive, address }) => alive && address !== "").map((n) => n.address);
    const elsewhere = addresses.filter((address) => address !== node.address);
    for (const address of others.keys()) if (!elsewhere.includes(address)) others.delete(address);
    return new Map([[node.address, own], ...elsewhere.map((address) => [address, at(address)] as const)]);
  };
}

/** The node at the address, asked through the network. */
export const sourceAt = (tcp: Pick<TcpTransport, "call">, to: string): WorkSource => ({
  ready: async (room, waitMs, signal) => Answer.parse(await tcp.call(to, method, { ...room, waitMs }, signal)),
});
