/**
 * The agent of one machine: holds a stream of goals to a node and runs a ServiceAgent for each service. It outlives
 * every node: without one, what runs goes on, and it tries again with growing pauses.
 */
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { must } from "#base/assert.ts";
import { isFault } from "#base/fault.ts";
import type { Clock } from "#base/clock.ts";
import { openGoal, type Goal } from "#doors/deploy/goal/goal.ts";
import type { Signed } from "#doors/deploy/signing/signing.ts";
import type { Machine } from "#doors/deploy/fleet/desk.ts";
import { ServiceName } from "#doors/deploy/service/service-file.ts";
import { AgentSwarm, type SwarmPorts } from "#doors/deploy/swarm/agent-swarm.ts";
import { KeptTrust } from "./kept-trust.ts";
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
const meetMsMin = 5_000;
const meetMsMax = 10 * 60_000;
const retryMsMin = 500;
const retryMsMax = 30_000;

export class Agent {
  readonly #ports: AgentPorts;
  readonly #services = new Map<string, ServiceAgent>();
  #trust: KeptTrust | undefined;
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
    this.#trust = await this.#openTrust(signal);
    this.#swarm = await this.#openSwarm();
    // What ran before goes on being looked after, whether a node answers or not.
    for (const name of await readdir(join(root, "services"))) await this.#service(name);
    const following = this.#forever(signal, "follow goals", async () => {
      try {
        for await (const signed of link.goals(this.#keys.version, signal)) await this.#take(signed);
      } catch (error) {
        this.#swarm?.askForHalts();
        throw error;
      }
      // A node that stops ends all its streams at once: its machines are not to come back at once.
      if (!signal.aborted) await this.#ports.clock.sleep(retryMsMin * (0.5 + 4 * Math.random()), signal);
    });
    const beating = this.#forever(signal, "report", async () => {
      for (const service of this.#services.values()) {
        const caps = await link.report(service.status);
        if (caps) this.#swarm?.setCaps(caps);
      }
      await this.#ports.clock.sleep(heartbeatMs, signal);
    });
    let pauseMs = meetMsMin;
    const meeting = this.#forever(signal, "meet other machines", async () => {
      await this.#swarm?.meet();
      // Soon again at first: when a fleet starts, the first ones know no one yet.
      await this.#ports.clock.sleep(pauseMs * (0.5 + Math.random()), signal);
      pauseMs = Math.min(meetMsMax, pauseMs * 2);
    });
    while (!signal.aborted) {
      for (const service of this.#services.values())
        await service.step().catch((error: unknown) => log(`step: ${(error as Error).message}`));
      await this.#ports.clock.sleep(tickMs, signal).catch(() => undefined);
    }
    await Promise.all([following, beating, meeting]);
    await this.#swarm?.[Symbol.asyncDispose]();
  }

  async #openSwarm(): Promise<AgentSwarm | undefined> {
    const { swarm, machine, link, clock, log } = this.#ports;
    if (!swarm) return undefined;
    return await AgentSwarm.open({
      ...swarm,
      folder: this.#ports.root,
      machine: machine.machine,
      nowMs: () => clock.monotonicMs(),
      log,
      ask: (question) => link.ask(question),
      originUnits: (content, range, signal) => link.units(content, range, signal),
      halts: () => [...this.#services.values()].flatMap(({ halt }) => (halt ? [halt] : [])),
      goal: (signed) => void this.#take(signed).catch((error: unknown) => log(`goal of a peer: ${String(error)}`)),
    });
  }

  async #take(signed: Signed): Promise<void> {
    const { log, machine } = this.#ports;
    if (signed.purpose === "trust") {
      const refused = await this.#keys.take(signed);
      return log(refused === undefined ? `keys: version ${this.#keys.version} counts` : `keys refused: ${refused}`);
    }
    const goal = this.#peek(signed);
    if (!goal) return;
    const { service, region, labels, halted } = goal;
    if (region !== machine.region || !labels.every((label) => machine.labels.includes(label))) return;
    const agent = await this.#service(service);
    const refused = await agent?.take(signed);
    if (refused === undefined) {
      // A halt must reach machines whose node is gone.
      if (halted) this.#swarm?.spread(signed);
    } else if (!refused.includes("is not newer")) log(`goal of ${service} refused: ${refused}`);
  }

  /** Verified before anything of it is used. One that does not count does not hold up those of other services. */
  #peek(signed: Signed): Goal | undefined {
    try {
      return openGoal(signed, this.#keys).goal;
    } catch (error) {
      if (!isFault(error, "invalid")) throw error;
      this.#ports.log(`a goal is refused: ${error.message}`);
      return undefined;
    }
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
      ring: this.#keys,
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

  get #keys(): KeptTrust {
    return must(this.#trust, "the keys are known before anything is verified");
  }

  async #openTrust(signal: AbortSignal): Promise<KeptTrust> {
    const { root, link, trusted } = this.#ports;
    let opened: KeptTrust | undefined;
    await this.#forever(signal, "ask for keys", async () => {
      opened = await KeptTrust.open(root, trusted, () => link.keys());
      return "done";
    });
    return opened ?? KeptTrust.none(root);
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
