/** A client like those of build tools: if one node does not answer it asks the next, and it never starts over. */
import { grpcCode, isGrpcError } from "#grpc/status.ts";
import type { GrpcClient } from "#grpc/client.ts";
import { Bench, executing, responseOf } from "#e2e/node/build/execution-lab.ts";
import {
  Execution,
  type Digest,
  type ExecuteResponse,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Operation } from "#wire/generated/google/longrunning/operations.ts";

export type Target = {
  readonly name: string;
  readonly client: GrpcClient;
  /** Whether it reports that it is ready. */
  readonly isReady: () => Promise<boolean>;
};

const triesMax = 50;
const pauseMs = 100;

export class PatientClient {
  readonly #targets: readonly Target[];
  #next = 0;
  /** How often it had to switch to another node. */
  turns = 0;

  constructor(targets: readonly Target[], first: number) {
    this.#targets = targets;
    this.#next = first;
  }

  /** Uploads an action of one line and follows it to its end, through any of the nodes. */
  async run(line: string): Promise<ExecuteResponse> {
    const action = await this.#anywhere((client) => new Bench(client).sh(line));
    let name: string | undefined;
    return await this.#anywhere(async (client) => {
      const stream = name === undefined ? execute(client, action) : wait(client, name);
      let last: Operation | undefined;
      for await (const operation of stream) {
        last = operation;
        name = operation.name;
      }
      if (!last) throw new Error("the call ended without a word");
      return responseOf(last);
    });
  }

  async #anywhere<T>(ask: (client: GrpcClient) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      const target = await this.#ready();
      try {
        return await ask(target.client);
      } catch (error) {
        if (!isGrpcError(error, grpcCode.unavailable) || tries >= triesMax) throw error;
        this.turns += 1;
        this.#next += 1;
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }

  /** The next ready one, as a balancer would choose it. */
  async #ready(): Promise<Target> {
    for (let tries = 0; tries < triesMax; tries += 1) {
      const target = this.#targets[this.#next % this.#targets.length];
      if (target && (await target.isReady())) return target;
      this.#next += 1;
      if (this.#next % this.#targets.length === 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    throw new Error("no node is ready");
  }
}

const execute = (client: GrpcClient, action: Digest): AsyncIterable<Operation> =>
  client.serverStream(Execution.methods.execute, executing(action));

const wait = (client: GrpcClient, name: string): AsyncIterable<Operation> =>
  client.serverStream(Execution.methods.waitExecution, { name });
