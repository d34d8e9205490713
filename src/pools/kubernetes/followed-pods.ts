/**
 * The pods of a pool as the API server shows them: one list, then its changes, and a list again when the server no
 * longer has what changed since (410 Gone) or the connection breaks.
 */
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import { isRefusal, type KubeClient } from "./client.ts";
import { Pod } from "./read-pod.ts";

const Meta = z.looseObject({ resourceVersion: z.string().default(""), continue: z.string().optional() });
const PodList = z.looseObject({ metadata: Meta, items: z.array(Pod) });
const Event = z.discriminatedUnion("type", [
  z.looseObject({ type: z.enum(["ADDED", "MODIFIED", "DELETED"]), object: Pod }),
  z.looseObject({
    type: z.literal("BOOKMARK"),
    object: z.looseObject({ metadata: z.looseObject({ resourceVersion: z.string() }) }),
  }),
  z.looseObject({
    type: z.literal("ERROR"),
    object: z.looseObject({ code: z.number().optional(), message: z.string().optional() }),
  }),
]);

const pageSize = 500;
const pagesMax = 100;
const watchSeconds = 240;

export type PodListPorts = {
  readonly client: Pick<KubeClient, "call" | "watch">;
  readonly selector: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly changed: () => void;
  readonly log: (line: string) => void;
};

export class FollowedPods implements AsyncDisposable {
  readonly #ports: PodListPorts;
  readonly #ending = new AbortController();
  readonly #done: Promise<void>;
  #pods: Map<string, Pod> | undefined;

  constructor(ports: PodListPorts) {
    this.#ports = ports;
    this.#done = this.#follow();
  }

  /** Undefined before the first list, and after the server was away for too long to know. */
  get pods(): readonly Pod[] | undefined {
    return this.#pods && [...this.#pods.values()];
  }

  /** What the server answered to a change of ours, before the watch says so. */
  learn(pod: Pod): void {
    this.#pods?.set(pod.metadata.name, pod);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new Error("the list of pods is closed"));
    await this.#done;
  }

  async #follow(): Promise<void> {
    const { clock, random, log } = this.#ports;
    const { signal } = this.#ending;
    let failures = 0;
    let version: string | undefined;
    while (!signal.aborted)
      try {
        version ??= await this.#list(signal);
        version = await this.#watch(version, signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        const isGone = isRefusal(error, 410);
        version = undefined;
        failures = isGone ? 0 : failures + 1;
        if (!isGone) {
          log(`follow pods: ${error instanceof Error ? error.message : String(error)}`);
          const waitMs = Math.min(30_000, 250 * 2 ** Math.min(failures, 10)) * (0.5 + random.fraction() / 2);
          await clock.sleep(waitMs, signal).catch(() => undefined);
        }
      }
  }

  async #list(signal: AbortSignal): Promise<string> {
    const { client, selector } = this.#ports;
    const found = new Map<string, Pod>();
    let next: string | undefined;
    let version = "";
    for (let page = 0; page < pagesMax; page += 1) {
      const query = { labelSelector: selector, limit: String(pageSize), ...(next !== undefined && { continue: next }) };
      const { items, metadata } = PodList.parse(await client.call({ method: "GET", path: "pods", query }, signal));
      for (const pod of items) found.set(pod.metadata.name, pod);
      version = metadata.resourceVersion;
      next = metadata.continue === "" ? undefined : metadata.continue;
      if (next === undefined) break;
    }
    this.#pods = found;
    this.#ports.changed();
    return version;
  }

  /** Until the server ends it, as it does every few minutes; the version to go on from, undefined to list again. */
  async #watch(from: string, signal: AbortSignal): Promise<string | undefined> {
    const { client, selector, changed } = this.#ports;
    let version = from;
    const query = {
      labelSelector: selector,
      resourceVersion: from,
      allowWatchBookmarks: "true",
      timeoutSeconds: String(watchSeconds),
    };
    for await (const said of client.watch("pods", query, signal)) {
      const event = Event.parse(said);
      if (event.type === "ERROR") return undefined;
      version = event.object.metadata.resourceVersion ?? version;
      if (event.type === "BOOKMARK") continue;
      if (event.type === "DELETED") this.#removed(event.object);
      else this.#pods?.set(event.object.metadata.name, event.object);
      changed();
    }
    return version;
  }

  #removed({ metadata: { name, uid } }: Pod): void {
    if (this.#pods?.get(name)?.metadata.uid === uid) this.#pods.delete(name);
  }
}
