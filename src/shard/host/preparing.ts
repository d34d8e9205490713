import type { Command } from "#kernel/model/command.ts";
import type { Asker } from "./asking.ts";
import type { Prepared } from "./prepare.ts";
import type { HostedShard } from "./shard.ts";

export type PreparedPorts = {
  ready(shard: HostedShard, command: Command, asker: Asker): void;
  failed(asker: Asker, error: unknown): void;
};

/** A command on its way through the preparer, and who waits for it. */
export class Preparing implements Prepared {
  readonly #ports: PreparedPorts;
  readonly #shard: HostedShard;
  readonly #asker: Asker;

  constructor(ports: PreparedPorts, shard: HostedShard, asker: Asker) {
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
