/**
 * Submitters and executors of `bench kernel -- --remote`, in a separate process: they reach the node through the work
 * protocol, as workers do. Receives its orders over the process's channel.
 */
import { systemClock } from "#door/system-clock.ts";
import type { Digest } from "#base/digest.ts";
import { createGrpcTransport } from "#shard/transport/grpc-transport.ts";
import { Asker } from "./asker.ts";
import { answering } from "#bench/load-process.ts";
import { commitTasks, jobOf, nextNo, reserveTasks, submitJob } from "./work.ts";

export type RemoteWork = {
  readonly kind: "work";
  readonly address: string;
  /** Of the node's operator. */
  readonly token: string;
  readonly digests: readonly Digest[];
  readonly tasks: number;
  /** Tasks of one job. */
  readonly tasksPerJob: number;
  /** How many of each go into one request. */
  readonly batch: number;
  readonly submitters: number;
  readonly executors: number;
};

export type RemoteDone = { readonly seconds: number };

const never = new AbortController().signal;

async function perform({ address, token, digests, ...work }: RemoteWork): Promise<RemoteDone> {
  const transport = createGrpcTransport({ clock: systemClock, metadata: [["authorization", `Bearer ${token}`]] });
  const asker = new Asker({ request: (request) => transport.request(address, request, never), digests, reports: [] });
  const startedMono = performance.now();
  const [, endedMono] = await Promise.all([submitAll(asker, work), executeAll(asker, work)]);
  await transport.close();
  return { seconds: (endedMono - startedMono) / 1_000 };
}

type Work = Omit<RemoteWork, "address" | "token" | "digests">;

async function submitAll(asker: Asker, { tasks, tasksPerJob, batch, submitters }: Work): Promise<void> {
  const each = Math.max(1, batch / tasksPerJob);
  let left = tasks / tasksPerJob;
  const submitter = async (): Promise<void> => {
    while (left > 0) {
      const count = Math.min(each, left);
      left -= count;
      if (count === 1) await submitJob(asker, 0, tasksPerJob);
      else
        await asker.askMany<"submit">(
          0,
          Array.from({ length: count }, () => jobOf(`job-${nextNo()}`, tasksPerJob)),
        );
    }
  };
  await Promise.all(Array.from({ length: submitters }, submitter));
}

/** Resolves when the last task was committed; executors that still wait for more are stopped a little later. */
async function executeAll(asker: Asker, { tasks, batch, executors }: Work): Promise<number> {
  let done = 0;
  let endedMono = 0;
  const executor = async (_: unknown, no: number): Promise<void> => {
    const name = `executor-${process.pid}-${no}`;
    while (done < tasks) {
      const grants = await reserveTasks(asker, 0, { executor: name, count: batch, waitMs: 50 });
      await commitTasks(asker, 0, name, grants, batch === 1 ? "one by one" : "together");
      done += grants.length;
      if (grants.length > 0) endedMono = performance.now();
    }
  };
  await Promise.all(Array.from({ length: executors }, executor));
  return endedMono;
}

answering(perform);
