/** Nodes and executors as separate processes, around one PostgreSQL. */
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "#door/system-clock.ts";
import type { Random } from "#base/random.ts";
import { openSharedDirectory } from "#blobs/tiers/shared-directory.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Journal, Ownership } from "#journal/journal.ts";
import { postgresJournal } from "#journal/postgres/postgres.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import type { PostgresServer } from "#testing/postgres.ts";
import { until } from "#testing/until.ts";
import { createEdge, edgeClient, type Edge } from "./edge.ts";
import { nodeCommand } from "./node-program.ts";
import type { Child, Processes } from "./processes.ts";
import type { WorkerSettings } from "./worker-main.ts";

export type ClusterPlan = {
  readonly nodes: number;
  readonly shards: number;
  /** Of a shard's owner. */
  readonly leaseMs: number;
  /** Tasks that a node runs itself. */
  readonly nodeSlots: number;
  /** Executors in processes of their own, and the tasks that each runs. */
  readonly workers: number;
  readonly slots: number;
};

export type Member = { readonly name: string; readonly address: string; child: Child };

export type ClusterPorts = {
  readonly plan: ClusterPlan;
  readonly processes: Processes;
  readonly postgres: PostgresServer;
  readonly random: Random;
};

const startMsMax = 60_000;

export class Cluster {
  readonly plan: ClusterPlan;
  readonly postgres: PostgresServer;
  readonly folder: string;
  readonly journal: Journal;
  readonly blobs: BlobStore;
  readonly edge: Edge;
  readonly client: WorkClient;
  readonly nodes: Member[] = [];
  readonly workers: Child[] = [];
  readonly #ports: ClusterPorts;
  readonly #database: string;
  readonly #onExit = (): void => clearAway(this.folder);

  private constructor(ports: ClusterPorts, database: string, folder: string, blobs: BlobStore) {
    this.#ports = ports;
    this.#database = database;
    this.plan = ports.plan;
    this.postgres = ports.postgres;
    this.folder = folder;
    this.blobs = blobs;
    this.journal = postgresJournal({ url: database });
    const random = ports.random.fork("edge");
    this.edge = createEdge({ clock: systemClock, random, addresses: () => this.addresses, tryMs: 2_000 });
    this.client = edgeClient(this.edge, ports.plan.shards, random);
    process.on("exit", this.#onExit); // when the run is cut short
  }

  static async start(ports: ClusterPorts): Promise<Cluster> {
    const folder = mkdtempSync(join(tmpdir(), "millrace-chaos-"));
    for (const name of ["attempts", "logs", "blobs"]) mkdirSync(join(folder, name));
    const cluster = new Cluster(
      ports,
      await ports.postgres.freshDatabase(),
      folder,
      await openSharedDirectory(join(folder, "blobs"), systemClock),
    );
    try {
      const { plan } = ports;
      await cluster.journal.open({ shards: plan.shards, clusterId: "chaos" });
      for (let i = 1; i <= plan.nodes; i += 1) cluster.addNode(`n${i}`);
      await cluster.untilServed();
      for (let i = 1; i <= plan.workers; i += 1) cluster.addWorker(`w${i}`);
      return cluster;
    } catch (error) {
      const logs = cluster.nodes.map(({ child }) => `${child.ending}\n${child.logTail()}`).join("\n");
      await cluster.remove();
      throw new Error(`the cluster did not come up; its nodes said:\n${logs}`, { cause: error });
    }
  }

  get attemptsFolder(): string {
    return join(this.folder, "attempts");
  }

  get addresses(): readonly string[] {
    return this.nodes.map(({ address }) => address);
  }

  addNode(name: string): Member {
    const address = `unix:${join(this.folder, `${name}.sock`)}`;
    const member = { name, address, child: this.#spawnNode(name, address) };
    this.nodes.push(member);
    return member;
  }

  restart(member: Member): void {
    member.child = this.#spawnNode(member.name, member.address);
  }

  /** From now on no request is sent to the member. */
  forget(member: Member): void {
    this.nodes.splice(this.nodes.indexOf(member), 1);
  }

  addWorker(name: string): void {
    const settings: WorkerSettings = {
      name,
      addresses: this.addresses,
      shards: this.plan.shards,
      slots: this.plan.slots,
      blobsFolder: join(this.folder, "blobs"),
      attemptsFolder: this.attemptsFolder,
    };
    const args = [join(import.meta.dirname, "worker-main.ts"), JSON.stringify(settings)];
    this.workers.push(this.#ports.processes.spawn({ name, args, logFile: join(this.folder, "logs", name) }));
  }

  async owned(name: string): Promise<readonly Ownership[]> {
    const all = await this.journal.ownerships();
    return all.filter(({ owner, remainingMs }) => owner === name && remainingMs > 0);
  }

  /** Waits until every shard answers, and every running node owns some. */
  async untilServed(limitMs: number = startMsMax): Promise<void> {
    await until(
      "every shard has a live owner, and every node has shards",
      async () => {
        const dead = this.nodes.find(({ child }) => child.hasExited);
        if (dead) throw new Error(`a node ended by itself: ${dead.child.ending}\n${dead.child.logTail()}`);
        const ownerships = await this.journal.ownerships().catch(() => []);
        const owners = new Set(ownerships.map(({ owner, remainingMs }) => (remainingMs > 0 ? owner : undefined)));
        return ownerships.length > 0 && !owners.has(undefined) && this.nodes.every(({ name }) => owners.has(name));
      },
      { limitMs, everyMs: 50 },
    );
    const shards = Array.from({ length: this.plan.shards }, (_, shard) => shard);
    await Promise.all(shards.map((shard) => this.client.stats(shard, { deadlineMs: limitMs })));
  }

  async remove(): Promise<void> {
    const children = [...this.nodes.map(({ child }) => child), ...this.workers];
    await Promise.all(children.map((child) => child.kill()));
    await this.edge.close();
    await this.journal.close();
    this.#onExit();
    process.off("exit", this.#onExit);
  }

  #spawnNode(name: string, address: string): Child {
    const { shards, leaseMs, nodeSlots: slots } = this.plan;
    const settings = { name, address, folder: this.folder, database: this.#database, shards, leaseMs, slots };
    return this.#ports.processes.spawn(nodeCommand(settings));
  }
}
