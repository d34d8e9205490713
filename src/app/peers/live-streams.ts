/** What tasks print, read from the node that runs them: this one without the network, others through it. */
import { z } from "zod";
import { Fault } from "#base/fault.ts";
import type { StreamKey, Streams } from "#blobs/streams.ts";
import type { Node } from "#shard/node.ts";
import type { TcpTransport } from "#shard/transport/tcp.ts";
import type { LiveSource, PullOptions } from "#worker/printed/live-source.ts";

const Key = z.object({
  tenant: z.string().max(300),
  task: z.string().max(100),
  token: z.int().min(1),
  name: z.string().max(100),
});

const Question = Key.extend({
  offset: z.int().min(0),
  waitMs: z.number().min(0).max(60_000),
});

const Answer = z.object({ bytes: z.base64() });
const SizeAnswer = z.object({ sizeBytes: z.int().min(0).nullable() });

const method = "live";
const sizeMethod = "live-size";
const pieceBytesMax = 256 * 1024;

/** Calls that a node serves for others. */
export const liveCalls = (streams: Streams | undefined) => ({
  [method]: async (body: unknown, signal: AbortSignal): Promise<{ readonly bytes: string }> => {
    const question = Question.safeParse(body);
    if (!question.success || !streams) throw new Fault("invalid", "read output", { why: "there is no output to read" });
    const { offset, waitMs, ...key } = question.data;
    const bytes = await firstPiece(streams, key, offset, { waitMs, signal });
    return { bytes: Buffer.from(bytes).toString("base64") };
  },
  [sizeMethod]: async (body: unknown): Promise<z.input<typeof SizeAnswer>> => {
    const key = Key.safeParse(body);
    if (!key.success) throw new Fault("invalid", "read output", { why: "there is no output to read" });
    return { sizeBytes: (await streams?.state(key.data))?.sizeBytes ?? null };
  },
});

export type OwnStreams = {
  readonly name: string;
  readonly streams: Streams | undefined;
  /** Whether every node reads the same streams. */
  readonly areShared: boolean;
};

/**
 * A node that runs the task has the end of its output in memory. Streams that all nodes share are read here when that
 * node is gone, or when who runs the task is no node. So is what is on this node's own disk: its name may have changed.
 */
export const liveSource = (
  own: OwnStreams,
  node: { readonly keeper: Pick<Node["keeper"], "nodes"> },
  tcp: Pick<TcpTransport, "call">,
): LiveSource => {
  const here = async (key: StreamKey, offset: number, options: PullOptions): Promise<Uint8Array | undefined> =>
    own.streams && (await firstPiece(own.streams, key, offset, options));
  const sizeHere = async (key: StreamKey): Promise<number | undefined> => (await own.streams?.state(key))?.sizeBytes;
  const addressOf = (worker: string) => {
    const found = node.keeper.nodes.find(({ node: id }) => id === worker);
    return { isNode: found !== undefined, address: found?.alive ? found.address : "" };
  };
  return {
    async size(worker, key, signal) {
      const sizeThere = async (address: string): Promise<number | undefined> =>
        SizeAnswer.parse(await tcp.call(address, sizeMethod, key, signal)).sizeBytes ?? undefined;
      if (worker === own.name) return await sizeHere(key);
      const { isNode, address } = addressOf(worker);
      const there = address === "" ? { why: gone(worker) } : await tried(() => sizeThere(address), signal);
      if ("found" in there) return there.found;
      const found = await sizeHere(key);
      if (found === undefined && isNode && !own.areShared) throw there.why;
      return found;
    },
    async pull(worker, key, offset, options) {
      const pullThere = async (address: string): Promise<Uint8Array> => {
        const question = { ...key, offset, waitMs: options.waitMs };
        const { bytes } = Answer.parse(await tcp.call(address, method, question, options.signal));
        return Buffer.from(bytes, "base64");
      };
      if (worker === own.name) return await here(key, offset, options);
      const { isNode, address } = addressOf(worker);
      const there = address === "" ? { why: undefined } : await tried(() => pullThere(address), options.signal);
      if ("found" in there) return there.found;
      // A worker that is no node sends its output to the node that it is connected to.
      if (own.areShared || !isNode || (await sizeHere(key)) !== undefined) return await here(key, offset, options);
      if (there.why !== undefined) throw there.why;
      return undefined;
    },
  };
};

/** What it returns, or why it failed; throws if the caller is gone. */
async function tried<T>(work: () => Promise<T>, signal: AbortSignal): Promise<{ found: T } | { why: Error }> {
  try {
    return { found: await work() };
  } catch (why) {
    if (signal.aborted) throw why;
    return { why: why as Error };
  }
}

/** An empty answer would say that nothing was printed. */
const gone = (worker: string): Fault =>
  new Fault("unavailable", "read output", { worker, why: "the node that has it does not run: start it again" });

/** The first bytes as soon as there are some; empty when the time is over, or when the stream has ended. */
async function firstPiece(
  streams: Streams,
  key: StreamKey,
  offset: number,
  { waitMs, signal }: PullOptions,
): Promise<Uint8Array> {
  const enough = AbortSignal.any([signal, AbortSignal.timeout(Math.max(1, Math.ceil(waitMs)))]);
  for await (const piece of streams.read(key, offset, enough)) return Uint8Array.from(piece.subarray(0, pieceBytesMax));
  return new Uint8Array();
}
