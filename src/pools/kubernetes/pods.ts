/**
 * Machines that are pods. What there is comes from the API server alone: a node that takes over, or starts again,
 * lists the pods of its pool and goes on.
 *
 * KP1 A token reaches its pod by a Secret that the pod owns: it goes with the pod, whatever becomes of this node.
 * KP2 A pod is removed by its uid, so never the next one in its slot.
 */
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import { z } from "zod";
import type { MachineMaker, NewMachine, SeenMachine } from "#pools/machine.ts";
import type { KubernetesSettings } from "#pools/pool-config.ts";
import { isRefusal, KubeClient } from "./client.ts";
import { FollowedPods } from "./followed-pods.ts";
import { annotations, podOf, secretOf, selectorOf } from "./manifest.ts";
import { isOver, machineOf, Pod } from "./read-pod.ts";

export type PodPorts = {
  readonly settings: KubernetesSettings;
  /** How pods reach a node. */
  readonly server: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly changed: () => void;
  readonly log: (line: string) => void;
};

const eventsMax = 5;

const Events = z.looseObject({
  items: z.array(
    z.looseObject({
      reason: z.string().default(""),
      message: z.string().default(""),
      type: z.string().default(""),
      lastTimestamp: z.string().nullish(),
      eventTime: z.string().nullish(),
    }),
  ),
});

export async function openPods(ports: PodPorts): Promise<MachineMaker> {
  const { api, namespace, tokenFile, caFile } = ports.settings;
  const isTls = api.startsWith("https:");
  const client = await KubeClient.open({
    api,
    namespace,
    tokenFile,
    caFile: isTls ? caFile : undefined,
    clock: ports.clock,
  });
  return new Pods(ports, client);
}

class Pods implements MachineMaker {
  readonly #ports: PodPorts;
  readonly #client: KubeClient;
  readonly #followed: FollowedPods;
  /**
   * By uid: when this node saw the pod first. Clocks of machines differ, so what the API server wrote is not
   * compared.
   */
  #firstSeenMs = new Map<string, number>();
  readonly #withToken = new Set<string>();

  constructor(ports: PodPorts, client: KubeClient) {
    this.#ports = ports;
    this.#client = client;
    const { settings, clock, random, changed, log } = ports;
    this.#followed = new FollowedPods({ client, selector: selectorOf(settings), clock, random, changed, log });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#followed[Symbol.asyncDispose]();
    this.#client.close();
  }

  seen(): readonly SeenMachine[] | undefined {
    const { pods } = this.#followed;
    if (!pods) return undefined;
    const nowMs = this.#ports.clock.monotonicMs();
    const before = this.#firstSeenMs;
    this.#firstSeenMs = new Map(pods.map(({ metadata: { uid } }) => [uid, before.get(uid) ?? nowMs]));
    for (const uid of this.#withToken) if (!this.#firstSeenMs.has(uid)) this.#withToken.delete(uid);
    return pods.flatMap((pod) => {
      const { uid } = pod.metadata;
      const machine = machineOf(pod);
      if (!machine) return [];
      const ageMs = nowMs - (this.#firstSeenMs.get(uid) ?? nowMs);
      return [{ ...machine, ageMs, hasToken: this.#withToken.has(uid) }];
    });
  }

  async create(wanted: NewMachine): Promise<boolean> {
    const { settings, server } = this.#ports;
    const template = settings.templates.find(({ name }) => name === wanted.template);
    if (!template) return false;
    try {
      const body = podOf(settings, template, wanted, server);
      const pod = Pod.parse(await this.#client.call({ method: "POST", path: "pods", body }));
      this.#followed.learn(pod);
      await this.#putToken(pod, wanted.token);
      return true;
    } catch (error) {
      if (isRefusal(error, 409, "AlreadyExists")) return false;
      throw error;
    }
  }

  async giveToken({ name, id }: SeenMachine, token: string): Promise<boolean> {
    const pod = this.#followed.pods?.find(({ metadata }) => metadata.name === name && metadata.uid === id);
    return pod !== undefined && (await this.#putToken(pod, token));
  }

  /** KP1 */
  async #putToken({ metadata: { name, uid, annotations: notes } }: Pod, token: string): Promise<boolean> {
    const body = secretOf({ name, uid }, { name: notes[annotations.secret] ?? name, token });
    try {
      await this.#client.call({ method: "POST", path: "secrets", body });
      return true;
    } catch (error) {
      if (isRefusal(error, 409, "AlreadyExists")) return false;
      throw error;
    } finally {
      this.#withToken.add(uid);
    }
  }

  /** KP2 */
  async remove({ name, id }: SeenMachine): Promise<void> {
    const pod = this.#followed.pods?.find(({ metadata }) => metadata.uid === id);
    const body = {
      apiVersion: "v1",
      kind: "DeleteOptions",
      preconditions: { uid: id },
      // A pod that is over has nothing to end gently; one that runs has the grace that it was made with.
      ...(pod && isOver(pod) && { gracePeriodSeconds: 0 }),
    };
    try {
      await this.#client.call({ method: "DELETE", path: `pods/${name}`, body });
    } catch (error) {
      if (isRefusal(error, 404) || isRefusal(error, 409)) return; // gone, or another has its slot
      throw error;
    }
  }

  async events({ id }: SeenMachine): Promise<readonly string[]> {
    const query = { fieldSelector: `involvedObject.uid=${id}`, limit: "50" };
    const { items } = Events.parse(await this.#client.call({ method: "GET", path: "events", query }));
    return items
      .toSorted((a, b) => (atOf(a) < atOf(b) ? -1 : 1))
      .slice(-eventsMax)
      .map(({ reason, message }) => `${reason}: ${message}`.slice(0, 300));
  }
}

const atOf = ({ lastTimestamp, eventTime }: z.output<typeof Events>["items"][number]): string =>
  lastTimestamp ?? eventTime ?? "";
