/**
 * What a worker that registered calls with: its own credential, renewed long before it ends. The worker's instance is
 * kept in its folder, so that it is the same worker after a restart while its registration lasts.
 */
import { randomBytes } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { leaveWorker, registerWorker, renewWorker } from "#api/workers.ts";
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { Metadata } from "#grpc/metadata.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";

export type RegisteredPorts = {
  readonly clock: Clock;
  /** Calls the node, with this token or without any. */
  readonly call: (token: string | undefined) => Fetch;
  readonly folder: string;
  readonly version: string;
  readonly slots: number;
  readonly log: (line: string) => void;
};

export type Registered = AsyncDisposable & {
  readonly name: string;
  readonly pools: readonly string[];
  readonly labels: readonly string[];
  readonly isEphemeral: boolean;
  readonly metadata: () => Metadata;
  /** Resolves when the worker is to leave, with the reason. */
  readonly dismissed: Promise<string>;
  /** Tells the cluster that it is gone for good. */
  leave(): Promise<void>;
};

type Credential = {
  readonly name: string;
  readonly token: string;
  readonly renewInMs: number;
  readonly untilMs: number;
  readonly drain?: string | undefined;
};

const retryMs = 5_000;

export async function registered(registration: string, ports: RegisteredPorts): Promise<Registered> {
  const { clock, call, log, version, slots } = ports;
  const about = { version, slots };
  const kept = await keptIn(ports.folder);
  const first = await begun(registration, kept, ports);
  const dismissed = Promise.withResolvers<string>();
  const closing = new AbortController();
  let current: Credential = first;
  let metadata = bearer(first.token);
  const use = async (next: Credential): Promise<void> => {
    current = next;
    metadata = bearer(next.token);
    await keep(ports.folder, { ...kept, token: next.token });
    if (next.drain !== undefined) dismissed.resolve(next.drain);
  };
  await use(first);
  const renewals = (async (): Promise<void> => {
    for (let waitMs = first.renewInMs; ;) {
      await clock.sleep(waitMs, closing.signal);
      try {
        const next = await callEndpoint(call(current.token), renewWorker, { body: about });
        await use(next);
        waitMs = next.renewInMs;
      } catch (error) {
        if (isRefused(error)) return dismissed.resolve("the cluster does not know this worker any more");
        if (!isFault(error)) throw error;
        log(`the worker's credential was not renewed: ${error.message}`);
        waitMs = retryMs;
      }
    }
  })().catch((error: unknown) => {
    if (!closing.signal.aborted) dismissed.resolve(String(error));
  });
  const { name, pools, labels, isEphemeral } = first;
  return {
    name,
    pools,
    labels,
    isEphemeral,
    metadata: () => metadata,
    dismissed: dismissed.promise,
    async leave() {
      await callEndpoint(call(current.token), leaveWorker, {}).catch((error: unknown) => log(String(error)));
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await renewals;
    },
  };
}

const bearer = (token: string): Metadata => [["authorization", `Bearer ${token}`]];

/** A credential of an earlier process that still counts needs no registration. */
async function begun(registration: string, { instance, token }: Kept, { call, version, slots }: RegisteredPorts) {
  const about = { version, slots };
  if (token !== undefined)
    try {
      return await callEndpoint(call(token), renewWorker, { body: about });
    } catch (error) {
      if (!isRefused(error)) throw error;
    }
  return await callEndpoint(call(undefined), registerWorker, { body: { token: registration, instance, ...about } });
}

const isRefused = (error: unknown): boolean => isFault(error) && [401, 403].includes(error.facts["status"] as number);

const Kept = z.object({ instance: z.string(), token: z.string().optional() });
type Kept = z.output<typeof Kept>;

const pathIn = (folder: string): string => join(folder, "worker.json");

async function keptIn(folder: string): Promise<Kept> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const text = await readFile(pathIn(folder), "utf8").catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  });
  if (text !== undefined) return Kept.parse(JSON.parse(text));
  const made = { instance: randomBytes(16).toString("hex") };
  await keep(folder, made);
  return made;
}

async function keep(folder: string, kept: Kept): Promise<void> {
  const path = pathIn(folder);
  await writeFile(`${path}.new`, JSON.stringify(kept), { mode: 0o600 });
  await rename(`${path}.new`, path);
}
