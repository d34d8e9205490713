/**
 * The agent of one machine: holds a stream of goals to a node and runs a ServiceAgent for each service. It outlives
 * every node: without one, what runs goes on, and it tries again with growing pauses.
 */
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { openGoal, type Goal } from "#doors/deploy/goal/goal.ts";
import { KeyRing, type Signed } from "#doors/deploy/signing/signing.ts";
import type { Machine } from "#doors/deploy/fleet/desk.ts";
import { ServiceName } from "#doors/deploy/service/service-file.ts";
import { AgentSwarm, type SwarmPorts } from "#doors/deploy/swarm/agent-swarm.ts";
import { readIfThere, writeDurably } from "./durable-files.ts";
import type { AgentLink } from "./link.ts";
import { selfService, type HandOver } from "./installed/program.ts";
import { ServiceAgent, type ServiceStatus } from "./service-agent.ts";

export type AgentPorts = {
  readonly machine: Omit<Machine, "tenant">;
  /** The agent's folder: one below it for each service. */
  readonly root: string;
  readonly link: AgentLink;
  readonly clock: Clock;
  readonly log: (line: string) => void;
  /** The public keys to trust, as PEM. Left out: those of the node at the first start, and the same ever after. */
  readonly trusted?: readonly string[] | undefined;
  /** How it takes part in the spreading of releases; left out: all bytes come from a node. */
  readonly swarm?: SwarmPlace | undefined;
  /** Installed agents update themselves (installed/program.ts). */
  readonly handOver?: HandOver | undefined;
};

export type SwarmPlace = Pick<SwarmPorts, "rack" | "host" | "port" | "caps" | "disturb">;

const servicesMax = 100;
const tickMs = 500;
const heartbeatMs = 5_000;
const retryMsMin = 500;
const retryMsMax = 30_000;

export class Agent {
  readonly #ports: AgentPorts;
  readonly #services = new Map<string, ServiceAgent>();
  #ring = new KeyRing([]);
  #swarm: AgentSwarm | undefined;

  constructor(ports: AgentPorts) {
    this.#ports = ports;
  }

  get statuses(): readonly ServiceStatus[] {
    return [...this.#services.values()].map(({ status }) => status);
  }

  /** Runs until the signal; services stay up. */
  async run(signal: AbortSignal): Promise<void> {
    const { root, link, log } = this.#ports;
    await mkdir(join(root, "services"), { recursive: true });
    this.#ring = new KeyRing(await this.#trustedKeys(signal));
    this.#swarm = await this.#openSwarm();
    // What ran before goes on being looked after, whether a node answers or not.
    for (const name of await readdir(join(root, "services"))) await this.#service(name);
    const following = this.#forever(signal, "follow goals", async () => {
      for await (const signed of link.goals(signal)) await this.#take(signed);
      // A node that stops ends all its streams at once: its machines are not to come back at once.
      if (!signal.aborted) await this.#ports.clock.sleep(retryMsMin * (0.5 + 4 * Math.random()), signal);
    });
    const beating = this.#forever(signal, "report", async () => {
      for (const service of this.#services.values()) await link.report(service.status);
      await this.#ports.clock.sleep(heartbeatMs, signal);
    });
    while (!signal.aborted) {
      for (const service of this.#services.values())
        await service.step().catch((error: unknown) => log(`step: ${(error as Error).message}`));
      await this.#ports.clock.sleep(tickMs, signal).catch(() => undefined);
    }
    await Promise.all([following, beating]);
    await this.#swarm?.[Symbol.asyncDispose]();
  }

  async #openSwarm(): Promise<AgentSwarm | undefined> {
    const { swarm, machine, link, clock, log } = this.#ports;
    if (!swarm) return undefined;
    return await AgentSwarm.open({
      ...swarm,
      machine: machine.machine,
      nowMs: () => clock.monotonicMs(),
      log,
      ask: (question) => link.ask(question),
      originUnits: (content, range, signal) => link.units(content, range, signal),
      goal: (signed) => void this.#take(signed).catch((error: unknown) => log(`goal of a peer: ${String(error)}`)),
    });
  }

  async #take(signed: Signed): Promise<void> {
    const { log, machine } = this.#ports;
    const { service, region, labels, halted } = this.#peek(signed);
    if (region !== machine.region || !labels.every((label) => machine.labels.includes(label))) return;
    const agent = await this.#service(service);
    const refused = await agent?.take(signed);
    if (refused === undefined) {
      // A halt must reach machines whose node is gone.
      if (halted) this.#swarm?.spread(signed);
    } else if (!refused.includes("is not newer")) log(`goal of ${service} refused: ${refused}`);
  }

  /** Verified before anything of it is used. */
  #peek(signed: Signed): Goal {
    return openGoal(signed, this.#ring).goal;
  }

  async #service(name: string): Promise<ServiceAgent | undefined> {
    const known = this.#services.get(name);
    if (known) return known;
    const { machine, root, link, clock, log, handOver } = this.#ports;
    if (!ServiceName.safeParse(name).success || this.#services.size >= servicesMax) return undefined;
    if (name === selfService && !handOver) return undefined; // nothing could take over
    const agent = await ServiceAgent.open({
      machine: machine.machine,
      labels: machine.labels,
      service: name,
      region: machine.region,
      folder: join(root, "services", name),
      ring: this.#ring,
      clock,
      manifest: (digest) => link.manifest(digest),
      segment: (digest) => link.segment(digest),
      swarm: this.#swarm,
      handOver: name === selfService ? handOver : undefined,
      log: (line) => log(`${name}: ${line}`),
      changed: (status: ServiceStatus) => {
        log(`${name}: ${status.state}: ${status.why}`);
        void link.report(status).catch(() => undefined); // the next heartbeat says it again
      },
    });
    this.#services.set(name, agent);
    return agent;
  }

  async #trustedKeys(signal: AbortSignal): Promise<readonly string[]> {
    if (this.#ports.trusted) return this.#ports.trusted;
    const path = join(this.#ports.root, "trusted-keys.json");
    const kept = await readIfThere(path);
    if (kept !== undefined) return JSON.parse(kept) as string[];
    let keys: readonly string[] | undefined;
    await this.#forever(signal, "ask for keys", async () => {
      keys = await this.#ports.link.keys();
      return "done";
    });
    await writeDurably(path, JSON.stringify(keys ?? []));
    return keys ?? [];
  }

  /** Again and again until the signal, with growing pauses after failures, and some chance in them: no herd. */
  async #forever(signal: AbortSignal, doing: string, work: () => Promise<"done" | void>): Promise<void> {
    const { clock, log } = this.#ports;
    let pauseMs = retryMsMin;
    while (!signal.aborted) {
      try {
        if ((await work()) === "done") return;
        pauseMs = retryMsMin;
      } catch (error) {
        if (signal.aborted) return;
        log(`${doing}: ${(error as Error).message}; again in ${Math.round(pauseMs / 1_000)} s`);
        await clock.sleep(pauseMs * (0.5 + Math.random()), signal).catch(() => undefined);
        pauseMs = Math.min(retryMsMax, pauseMs * 2);
      }
    }
  }
}
