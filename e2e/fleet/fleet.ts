/** Nodes as a user would run several: one PostgreSQL, one shared folder, one mesh; each a separate process. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { dataFolder } from "#app/node/data-folder.ts";
import { readOwnerToken } from "#app/node/owner-token.ts";
import { systemClock } from "#door/system-clock.ts";
import { GrpcClient } from "#grpc/client.ts";
import { connectH2 } from "#h2/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { freePort } from "#testing/free-port.ts";
import { until } from "#testing/until.ts";
import type { Child, Processes } from "#e2e/chaos/processes.ts";
import { Balancer } from "./balancer.ts";
import type { Wires } from "./wires.ts";

export type FleetPlan = {
  readonly nodes: number;
  readonly shards: number;
  /** Of a shard's owner. */
  readonly leaseMs: number;
  /** Actions that a node runs at once. */
  readonly slots: number;
  /** Settings of all nodes besides, such as `node.features=3`. */
  readonly settings?: readonly string[];
  /** Another version's checkout, which the nodes run at first; left out, this one. */
  readonly checkout?: string | undefined;
};

export type FleetPorts = {
  readonly processes: Processes;
  readonly database: string;
  /** A network for each node; left out: all use this machine's network. */
  readonly wires?: Wires | undefined;
};

export type Member = {
  readonly name: string;
  /** Where clients reach it: host:port. */
  readonly edge: string;
  readonly mesh: string;
  readonly config: string;
  readonly log: string;
  /** Its own network, where it has one. */
  readonly net: ReturnType<Wires["add"]> | undefined;
  child: Child | undefined;
};

const here = join(import.meta.dirname, "../..");
/** On a busy machine. */
const startMsMax = 240_000;

export class Fleet implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "millrace-fleet-"));
  readonly members: Member[] = [];
  readonly plan: FleetPlan;
  readonly #ports: FleetPorts;
  readonly #clients = new Map<string, GrpcClient>();
  readonly #carriers = new AsyncDisposableStack();

  private constructor(plan: FleetPlan, ports: FleetPorts) {
    this.plan = plan;
    this.#ports = ports;
    chmodSync(this.folder, 0o711); // actions run as users of their own, who must be able to enter
    for (const name of ["shared", "logs"]) mkdirSync(join(this.folder, name));
  }

  static async start(plan: FleetPlan, ports: FleetPorts): Promise<Fleet> {
    const fleet = new Fleet(plan, ports);
    try {
      for (let i = 1; i <= plan.nodes; i += 1) fleet.members.push(await fleet.#member(`n${i}`));
      if (ports.wires) await fleet.#connect(ports.wires);
      for (const member of fleet.members) fleet.#write(member);
      for (const member of fleet.members) fleet.up(member, plan.settings, plan.checkout);
      await Promise.all(fleet.members.map((member) => fleet.ready(member)));
      return fleet;
    } catch (error) {
      const logs = fleet.members.map(({ name, child }) => `${name}:\n${child?.logTail()}`).join("\n");
      await fleet[Symbol.asyncDispose]();
      throw new Error(`the fleet did not come up; its nodes said:\n${logs}`, { cause: error });
    }
  }

  get shared(): string {
    return join(this.folder, "shared");
  }

  member(name: string): Member {
    const found = this.members.find((member) => member.name === name);
    if (!found) throw new Error(`there is no node ${name}`);
    return found;
  }

  /** Started, whether it is ready or not; with other settings than the plan's, if they are given. */
  up(member: Member, settings: readonly string[] = this.plan.settings ?? [], checkout = here): void {
    const args = [
      join(checkout, "src/cli/main.ts"),
      "up",
      "--config",
      member.config,
      ...settings.flatMap((one) => ["--set", one]),
    ];
    const env = { XDG_CACHE_HOME: join(this.folder, "cache") };
    const { within = [] } = member.net ?? {};
    member.child = this.#ports.processes.spawn({ name: member.name, args, within, env, logFile: member.log });
  }

  /** Waits until it accepts calls. One that could not start is started again, as a supervisor would. */
  async ready(member: Member, triesMax = 1): Promise<void> {
    let tries = 1;
    const isReady = async (): Promise<boolean> => {
      if (member.child?.hasExited) {
        if (tries >= triesMax) throw new Error(`it ended by itself: ${member.child.ending}`);
        tries += 1;
        await pause(1_000);
        this.up(member);
      }
      return await fetch(`http://${member.edge}/readyz`, { signal: AbortSignal.timeout(1_000) }).then(
        ({ ok }) => ok,
        () => false,
      );
    };
    await until(`${member.name} is ready`, isReady, { limitMs: startMsMax, everyMs: 50 });
  }

  async kill(member: Member): Promise<void> {
    await member.child?.kill();
  }

  /** How many actions it runs now, as it reports. */
  async running(member: Member): Promise<number> {
    const headers = this.headers(member);
    const answer = await fetch(`http://${member.edge}/metrics`, { headers, signal: AbortSignal.timeout(1_000) });
    const pools = (await answer.text()).matchAll(/^millrace_worker_running\{[^}]*\} (\d+)/gm);
    return [...pools].reduce((sum, [, count]) => sum + Number(count), 0);
  }

  /** Of the node's operator: with the token in its folder. */
  headers({ name }: Member): { readonly authorization: string } {
    return { authorization: `Bearer ${readOwnerToken(dataFolder(join(this.folder, name)))}` };
  }

  /** A client of one node, and of no other, as its operator. The node must have been started. */
  client(member: Member): GrpcClient {
    const found = this.#clients.get(member.name);
    if (found) return found;
    const [host = "", port] = member.edge.split(":");
    const connect = () => connectH2({ host, port: Number(port), clock: systemClock });
    const metadata = [["authorization", this.headers(member).authorization]] as const;
    const client = new GrpcClient({ clock: systemClock, authority: member.edge, connect, metadata });
    this.#clients.set(member.name, client);
    return client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients.values()) client.close();
    for (const { child } of this.members) child?.signal("SIGCONT");
    await Promise.all(this.members.flatMap(({ child }) => (child ? [child.leave(15_000)] : [])));
    await this.#carriers.disposeAsync();
    execFileSync("chmod", ["-R", "u+w", this.folder]);
    clearAway(this.folder);
  }

  async #member(name: string): Promise<Member> {
    const data = join(this.folder, name);
    mkdirSync(data, { mode: 0o711 });
    const net = this.#ports.wires?.add();
    return {
      name,
      edge: `${net?.host ?? "127.0.0.1"}:${await freePort()}`,
      mesh: `${net?.host ?? "127.0.0.1"}:${await freePort()}`,
      config: join(data, "config.yaml"),
      log: join(this.folder, "logs", name),
      net,
      child: undefined,
    };
  }

  /** From outside to each node, which listens only on its own machine, and from the nodes to the database. */
  async #connect({ gateway }: Wires): Promise<void> {
    const { port } = new URL(this.#ports.database);
    this.#carriers.use(await Balancer.open([`127.0.0.1:${port}`], { listen: `${gateway}:${port}` }));
    for (const { name, edge, net } of this.members) {
      const args = [join(import.meta.dirname, "relay-main.ts"), edge, `127.0.0.1:${edge.split(":")[1]}`];
      const logFile = join(this.folder, "logs", `${name}-relay`);
      const relay = this.#ports.processes.spawn({ name: "relay", args, within: net?.within ?? [], logFile });
      this.#carriers.defer(() => relay.kill());
    }
  }

  /** What nodes need to know of each other when each has a separate network. */
  #wired({ edge, mesh, net }: Member) {
    if (!net) return { listen: "unix", edge, database: this.#ports.database };
    const secretFile = join(this.folder, "secret");
    writeFileSync(secretFile, "stones-and-water-and-wheels\n", { mode: 0o600 });
    const database = new URL(this.#ports.database);
    database.hostname = this.#ports.wires?.gateway ?? "";
    const port = Number(mesh.split(":")[1]);
    return {
      listen: `tcp:${net.host}:${port + 1}`,
      edge: `127.0.0.1:${edge.split(":")[1]}`,
      database: database.href,
      secret: { secretFile },
      keys: { keys: [Buffer.alloc(32, 7).toString("base64")] },
    };
  }

  #write(member: Member): void {
    const { shards, leaseMs, slots } = this.plan;
    const { name, mesh, config } = member;
    const { listen, edge, database, secret, keys } = this.#wired(member);
    const data = join(this.folder, name);
    const actionsIn = join(data, "actions");
    mkdirSync(actionsIn, { mode: 0o711 });
    const names = { kind: "postgres", url: database };
    const settings = {
      cluster: { name: "fleet", shards, ownerLease: `${leaseMs}ms`, ...secret },
      node: { name, data, listen: [listen], stopWithin: "5s" },
      edge: { listen: [edge] },
      mesh: { listen: mesh, join: this.members.map((member) => member.mesh), profile: "local", ...keys },
      journal: { kind: "postgres", url: database },
      blobs: { kind: "disk", authoritative: { kind: "directory", directory: this.shared, names } },
      build: { properties: ["node", "stones"] },
      // All but the first: actions that need the label can go on when one of them is gone.
      worker: { slots, actionsIn, labels: name === "n1" ? [] : ["stones=yes"] },
    };
    writeFileSync(config, JSON.stringify(settings));
  }
}
