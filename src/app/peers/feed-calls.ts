/** The event feed between nodes: each asks the owners of the shards that it does not own itself. */
import { z } from "zod";
import { Fault } from "#base/fault.ts";
import type { FeedAnswer, FeedDesk, FeedQuestion } from "#feed/desk.ts";
import type { TcpTransport } from "#shard/transport/tcp.ts";

const Question = z.object({
  shards: z.array(z.object({ shard: z.int().min(0), after: z.int().min(0).optional() })).max(100_000),
  waitMs: z.number().min(0).max(60_000),
});

const method = "feed";

/** Calls that a node serves for others. */
export const feedCalls = (desk: FeedDesk) => ({
  [method]: async (body: unknown, signal: AbortSignal): Promise<readonly FeedAnswer[]> => {
    const question = Question.safeParse(body);
    if (!question.success) throw new Fault("invalid", "follow the event feed", { why: "the request is malformed" });
    return await desk.ask(question.data, signal);
  },
});

/** Nodes of one cluster trust each other; the answer is what `FeedDesk.ask` returned there. */
export const askFeed =
  (tcp: Pick<TcpTransport, "call">) =>
  async (address: string, question: FeedQuestion, signal: AbortSignal): Promise<readonly FeedAnswer[]> =>
    (await tcp.call(address, method, question, signal)) as readonly FeedAnswer[];
