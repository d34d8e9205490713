import type { Command } from "#kernel/model/command.ts";
import type { Requester } from "./pending-request.ts";
import type { Prepared } from "./prepare.ts";
import type { HostedShard } from "./shard.ts";

export type PreparedPorts = {
  ready(shard: HostedShard, command: Command, asker: Requester): void;
  failed(asker: Requester, error: unknown): void;
};

/** A command that the preparer works on, and the caller that waits for it. */
export class Preparing implements Prepared {
  readonly #ports: PreparedPorts;
  readonly #shard: HostedShard;
  readonly #asker: Requester;

  constructor(ports: PreparedPorts, shard: HostedShard, asker: Requester) {
    this.#ports = ports;
    this.#shard = shard;
    this.#asker = asker;
  }

  ready(command: Command): void {
    this.#ports.ready(this.#shard, command, this.#asker);
  }

  failed(error: unknown): void {
    this.#ports.failed(this.#asker, error);
  }
}
