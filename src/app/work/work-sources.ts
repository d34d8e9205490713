/** The nodes that a worker hears about work from: its own directly, the others over the network. */
import { z } from "zod";
import { Fault } from "#base/fault.ts";
import type { Node } from "#shard/node.ts";
import type { ReadyShard } from "#shard/watch/ready-desk.ts";
import type { TcpTransport } from "#shard/transport/tcp.ts";
import type { WorkSource, WorkSources } from "#worker/visits/sources.ts";

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

/** Work of another region is heard of more quietly, never not at all (K10). */
const farWeight = 0.25;

/** `region` is this node's, if it has one. */
export function workSources(
  node: Pick<Node, "ready" | "address" | "keeper">,
  tcp: TcpTransport,
  region?: string,
): WorkSources {
  const others = new Map<string, WorkSource>();
  const own: WorkSource = { ready: (room, waitMs, signal) => node.ready.wait(room, waitMs, signal) };
  const at = (address: string, isFar: boolean): WorkSource => {
    const name = `${address} ${isFar}`;
    let source = others.get(name);
    if (!source) others.set(name, (source = isFar ? quieter(sourceAt(tcp, address)) : sourceAt(tcp, address)));
    return source;
  };
  return () => {
    const elsewhere = node.keeper.nodes
      .filter(({ alive, address }) => alive && address !== "" && address !== node.address)
      .map(({ address, facts }) => ({ address, isFar: isElsewhere(region, facts["region"]) }))
      .toSorted((a, b) => Number(a.isFar) - Number(b.isFar));
    const present = new Set(elsewhere.map(({ address, isFar }) => `${address} ${isFar}`));
    for (const name of others.keys()) if (!present.has(name)) others.delete(name);
    return new Map([
      [node.address, own],
      ...elsewhere.map((each) => [each.address, at(each.address, each.isFar)] as const),
    ]);
  };
}

/** Only where both say where they are. */
const isElsewhere = (own: string | undefined, other: string | number | undefined): boolean =>
  own !== undefined && other !== undefined && own !== other;

const quieter = (source: WorkSource): WorkSource => ({
  ready: async (room, waitMs, signal) =>
    (await source.ready(room, waitMs, signal)).map(([shard, weight]) => [shard, weight * farWeight] as const),
});

/** The node at the address, asked through the network. */
export const sourceAt = (tcp: Pick<TcpTransport, "call">, to: string): WorkSource => ({
  ready: async (room, waitMs, signal) => Answer.parse(await tcp.call(to, method, { ...room, waitMs }, signal)),
});
