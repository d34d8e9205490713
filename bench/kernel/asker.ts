/** Sends requests to a shard over any transport, and repeats those that are refused for now. */
import { systemClock } from "#door/system-clock.ts";
import type { Digest } from "#base/digest.ts";
import type { Command, CommandOf } from "#kernel/model/command.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { Replies } from "#kernel/model/reply.ts";
import type { ShardRequest, ShardResponse } from "#shard/transport/protocol.ts";

export type AskerOptions = {
  readonly request: (request: ShardRequest) => Promise<ShardResponse>;
  /** Existing blobs that results may name. */
  readonly digests: readonly Digest[];
  /** What the node reported, to explain refusals. */
  readonly reports: readonly string[];
};

export class Asker {
  readonly digests: readonly Digest[];
  /** How often the node was overloaded. */
  refused = 0;
  /** How often the node did not own the shard: its lease expired because the machine stalled. */
  homeless = 0;
  readonly #options: AskerOptions;

  constructor(options: AskerOptions) {
    this.#options = options;
    this.digests = options.digests;
  }

  /** The reply to a command. A command that is refused for now is repeated; any other refusal ends the benchmark. */
  async ask<K extends Command["kind"]>(shard: number, command: CommandOf<K>, waitMs = 0): Promise<Replies[K]> {
    for (;;) {
      const response = await this.#options.request({ kind: "command", shard, command: command as Command, waitMs });
      if (response.kind === "reply") return response.reply as Replies[K];
      if (response.kind === "not-owner") this.homeless += 1;
      else if (response.kind === "overloaded" || (response.kind === "rejected" && isRoom(response.rejection)))
        this.refused += 1;
      else throw new Error(this.#complaint(command.kind, response));
      await systemClock.sleep(retryMs);
    }
  }

  /** The replies to commands that go in one request. */
  async askMany<K extends Command["kind"]>(shard: number, commands: readonly CommandOf<K>[]): Promise<Replies[K][]> {
    for (;;) {
      const request = { kind: "commands", shard, commands: commands as readonly Command[] } as const;
      const response = await this.#options.request(request);
      if (response.kind === "said")
        return response.said.map((one) => {
          if (one.kind === "reply") return one.reply as Replies[K];
          throw new Error(this.#complaint("one of many", one));
        });
      if (response.kind === "not-owner") this.homeless += 1;
      else if (response.kind === "overloaded") this.refused += 1;
      else throw new Error(this.#complaint("many commands", response));
      await systemClock.sleep(retryMs);
    }
  }

  #complaint(kind: string, response: ShardResponse): string {
    const reports = this.#options.reports.slice(-5).join("; ");
    return `${kind} was answered with ${JSON.stringify(response)}; the node said: ${reports || "nothing"}`;
  }
}

const retryMs = 20;
const isRoom = ({ kind }: Rejection): boolean => kind === "shard-full" || kind === "queue-full";
