/**
 * Batches commands: those that arrive while requests to the same shard are in flight are sent together with the next
 * request, which costs one message and one wait for all of them. A command for a shard with few requests in flight is
 * sent at once, alone.
 */
import type { ShardId } from "#base/ids.ts";
import type { Command } from "#kernel/model/command.ts";
import type { Reply } from "#kernel/model/reply.ts";
import { replyOf, type AskCommand } from "./ask.ts";
import type { CommandOutcome } from "#shard/transport/protocol.ts";
import { RejectedError } from "#shard/work/rejected.ts";
import type { AskOptions, Router } from "#shard/router/router.ts";

type Waiting = {
  readonly command: Command;
  readonly options: AskOptions;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
};

type Lane = { readonly shard: ShardId; underWay: number; waiting: Waiting[] };

/** How many requests may be in flight for one shard before commands are batched: one slow answer must not block all. */
const underWayDefault = 4;
/** At most what an owner accepts in one request, and few enough that the request stays fast. */
const togetherMax = 250;
/** Some results name very many blobs, and the size of a message is limited. */
const digestsTogetherMax = 50_000;

export function gathering(router: Router, underWayMax: number = underWayDefault): AskCommand {
  const gatherer = new Gatherer(router, underWayMax);
  return ((shard, command, options) => gatherer.ask(shard, command, options)) as AskCommand;
}

class Gatherer {
  readonly #router: Router;
  readonly #underWayMax: number;
  readonly #lanes = new Map<ShardId, Lane>();

  constructor(router: Router, underWayMax: number) {
    this.#router = router;
    this.#underWayMax = underWayMax;
  }

  ask(shard: ShardId, command: Command, options: AskOptions = {}): Promise<Reply> {
    let lane = this.#lanes.get(shard);
    if (!lane) this.#lanes.set(shard, (lane = { shard, underWay: 0, waiting: [] }));
    const { waiting } = lane;
    const pending = new Promise<Reply>((resolve, reject) => waiting.push({ command, options, resolve, reject }));
    this.#go(lane);
    return pending;
  }

  #go(lane: Lane): void {
    while (lane.underWay < this.#underWayMax && lane.waiting.length > 0) {
      lane.underWay += 1;
      void this.#send(lane, takeAlike(lane)).then(() => {
        lane.underWay -= 1;
        this.#go(lane);
      });
    }
    if (lane.underWay === 0) this.#lanes.delete(lane.shard);
  }

  async #send({ shard }: Lane, together: readonly Waiting[]): Promise<void> {
    try {
      const said = await this.#ask(shard, together);
      for (const [i, { command, resolve, reject }] of together.entries()) {
        try {
          resolve(replyOf(command.kind, shard, said[i]));
        } catch (error) {
          reject(error);
        }
      }
    } catch (error) {
      for (const { reject } of together) reject(error);
    }
  }

  async #ask(shard: ShardId, together: readonly Waiting[]): Promise<readonly (CommandOutcome | undefined)[]> {
    const [first] = together;
    if (!first) return [];
    const { command, options } = first;
    const request =
      together.length === 1
        ? ({ kind: "command", shard, command } as const)
        : ({ kind: "commands", shard, commands: together.map((one) => one.command) } as const);
    const settled = await this.#router.request(request, options);
    if (settled.kind === "said") return settled.said;
    if (settled.kind === "rejected" && together.length > 1)
      throw new RejectedError("ask many commands", shard, settled.rejection);
    return settled.kind === "answer" ? [] : [settled];
  }
}

/** Takes commands with the same deadline and abort signal. */
function takeAlike(lane: Lane): readonly Waiting[] {
  const first = lane.waiting[0]?.options;
  const together: Waiting[] = [];
  const others: Waiting[] = [];
  let digestsLeft = digestsTogetherMax;
  for (const one of lane.waiting) {
    const { deadlineMs, signal } = one.options;
    const isAlike = deadlineMs === first?.deadlineMs && signal === first?.signal && together.length < togetherMax;
    const { kind } = one.command;
    const digests = kind === "commit" || kind === "fail" ? (one.command.result?.digests.length ?? 0) : 0;
    const fits = together.length === 0 || digests <= digestsLeft;
    (isAlike && fits ? together : others).push(one);
    if (isAlike && fits) digestsLeft -= digests;
  }
  lane.waiting = others;
  return together;
}
