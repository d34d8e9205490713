/** The deploy door on a node. */
import { join } from "node:path";
import { z } from "zod";
import type { OpenDoor } from "#door/door.ts";
import type { DoorPorts } from "#door/ports.ts";
import { CapsBook } from "./fleet/caps-book.ts";
import { printedByResult } from "#worker/follow/printed-by-result.ts";
import { FleetDesk } from "./fleet/desk.ts";
import { CensusQuestion } from "./fleet/census.ts";
import {
  countMethod,
  findMethod,
  fleetOf,
  heldMethod,
  pageMethod,
  snapshotMethod,
  tallyMethod,
  wakeMethod,
  waking,
} from "./fleet/fleet.ts";
import { PageQuestion } from "./fleet/page.ts";
import { GoalStore } from "./fleet/goals.ts";
import { KeptReleases } from "./fleet/kept-releases.ts";
import { Upkeep } from "./fleet/upkeep.ts";
import { ServiceBook } from "./fleet/service-book.ts";
import { SnapshotQuestion, Snapshots } from "./fleet/snapshots.ts";
import { TallyQuestion } from "./fleet/tally.ts";
import { MachineBook } from "./fleet/machine-book.ts";
import { KeyBook } from "./fleet/key-book.ts";
import { openSigner, openTicketKey, vaultSigner } from "./fleet/signing-key.ts";
import { door, kinds, nodeLabels, planFinish, planReplicate } from "./plan.ts";
import { ReleaseControls } from "./fleet/controls.ts";
import { deployMetrics } from "./metrics/node-metrics.ts";
import { ReleaseMetrics } from "./metrics/release-metrics.ts";
import { deployRoutes } from "./routes.ts";
import { buildRunner } from "./run/build.ts";
import { finishRunner, rollbackRunner } from "./run/finish.ts";
import { joinBuild } from "./run/join-build.ts";
import { planWaveWhenFree } from "./run/may-begin.ts";
import { replicateRunner } from "./run/replicate.ts";
import { sealRunner } from "./run/seal.ts";
import { waveRunner } from "./run/wave.ts";
import { planWorkflow, unpackRunner } from "./run/workflow-build.ts";
import type { DeploySettings } from "./config.ts";
import { Origin } from "./swarm/origin.ts";
import { priorities } from "#swarm/uploads.ts";
import { SwarmDesk } from "./swarm/swarm-desk.ts";
import { WanLinks } from "./swarm/wan-links.ts";

export async function openDeploy(ports: DoorPorts, settings: DeploySettings): Promise<OpenDoor> {
  const { stored, clock, client, node, peers, place, dataFolder, keyOf, random, records, warn } = ports;
  const { store, index } = stored;
  const cluster = { keyOf, folder: join(dataFolder, "deploy") };
  // asked for when they are needed: a node whose vault has no keys yet serves everything else
  const first = once(() => openSigner(cluster, settings.signingKey));
  if (settings.signingKey !== undefined) await first(); // a file that cannot be read is told at the start
  const keys = new KeyBook({ records, clock, first, signerOf: (name) => vaultSigner(keyOf, name) });
  const signer = () => keys.signer();
  const caps = new CapsBook(records, clock);
  const [here] = regionsIn(ports.labels);
  const nodesHere = (): number =>
    1 + peers.nodes().filter((peer) => peer.node !== node && peer.alive && peer.facts["region"] === here).length;
  const swarms = new SwarmDesk({
    clock,
    random: random.fork("swarm"),
    clusterKey: () => openTicketKey(cluster),
    caps: (tenant) => caps.of(tenant),
    regionOf: (tenant, machine) => desk.regionOf(tenant, machine),
    nodes: nodesHere,
  });
  const wan = new WanLinks({ clock, limit: async (tenant) => (await caps.of(tenant)).wanLink, nodes: nodesHere });
  const origin = new Origin({
    store,
    clock,
    bytesPerSecond: settings.originUpload,
    async toRegion({ tenant, region, priority }, bytes, signal) {
      if (here !== undefined && region !== undefined && region !== here)
        await wan.pass(tenant, bytes, priority, signal);
    },
  });
  const goals = new GoalStore({ index, store, signer, clock });
  const desk = new FleetDesk(goals, keys, clock, ({ tenant, machine }, isHere) =>
    swarms.isHere(tenant, machine, isHere),
  );
  const missed = (reason: string): void => warn("deploy goals not looked after", { reason });
  const snapshots = new Snapshots({ node, desk, folder: cluster.folder, store, clock, warn: missed });
  const fleet = fleetOf({ node, desk, snapshots, peers });
  const news = waking(node, desk, peers);
  const book = new MachineBook({
    records,
    clock,
    refused: (peer, tenant, reason) => warn("deploy machine refused", { peer, tenant, reason }),
  });
  const controls = new ReleaseControls(index, clock);
  const services = new ServiceBook(records, clock);
  const closing = new AbortController();
  const kept = new KeptReleases({ keeps: ports.keeps, store, goals, clock });
  const upkeep = new Upkeep({ goals, keys, desk, news, clock, releases: kept, warn: missed });
  const keeping = Promise.all([upkeep.run(closing.signal), snapshots.run(closing.signal)]);
  const releases = new ReleaseMetrics();
  const seal = sealRunner({ store, goals, signer, warn });
  const running = { goals, desk: news, fleet };
  return {
    labels: nodeLabels,
    printed: { [door]: printedByResult(stored.blobs) },
    ...(place && {
      runners: {
        [kinds.build]: buildRunner({ place, store, goals, index, seal }),
        [kinds.unpack]: unpackRunner({ place, store, goals, index, seal, ask: ports.ask }),
        [kinds.seal]: seal,
        [kinds.replicate]: replicateRunner(store, async ({ task, signal }, bytes) => {
          if (here !== undefined) await wan.pass(task.tenant, bytes, priorities.ahead, signal);
        }),
        [kinds.wave]: waveRunner({ ...running, controls }),
        [kinds.finish]: finishRunner(running),
        [kinds.rollback]: rollbackRunner(running),
      },
      planners: {
        [kinds.planBuild]: joinBuild({ client, index, store }),
        [kinds.planWorkflow]: planWorkflow({ ask: ports.ask, client }),
        [kinds.planReplicate]: (inputs) => planReplicate(inputs, regionsServed(ports)),
        [kinds.planWave]: planWaveWhenFree({ goals, clock }),
        [kinds.planFinish]: planFinish,
      },
    }),
    calls: {
      [pageMethod]: (body) => Promise.resolve(desk.page(PageQuestion.parse(body))),
      [countMethod]: (body) => Promise.resolve(desk.count(CensusQuestion.parse(body))),
      [findMethod]: (body) => Promise.resolve(desk.find(FindQuestion.parse(body))),
      [tallyMethod]: (body) => Promise.resolve(desk.tally(TallyQuestion.parse(body))),
      [heldMethod]: (body) => {
        const { question, names } = HeldQuestion.parse(body);
        return Promise.resolve(desk.held(question, new Set(names)));
      },
      [snapshotMethod]: (body) => snapshots.write(SnapshotQuestion.parse(body)),
      [wakeMethod]: (body) => {
        desk.wake(z.object({ region: z.string() }).parse(body));
        return Promise.resolve({});
      },
    },
    observer: releases,
    metrics: (metrics) => deployMetrics(metrics, { desk, swarms, origin, book, upkeep, releases, clock }),
    routes: deployRoutes({
      client,
      store,
      keys,
      swarms,
      origin,
      goals,
      fleet,
      desk,
      news,
      book,
      services,
      caps,
      controls,
      clock,
    }),
    async close() {
      closing.abort();
      await keeping;
    },
  };
}

const FindQuestion = z.object({ tenant: z.string(), names: z.array(z.string()) });
const HeldQuestion = z.object({ question: TallyQuestion, names: z.array(z.string()) });

const regionsIn = (labels: readonly string[]): readonly string[] =>
  labels.flatMap((label) => (label.startsWith("region=") ? [label.slice("region=".length)] : []));

/** Regions with a node that runs work there (node.region). */
const regionsServed = ({ peers, labels }: Pick<DoorPorts, "peers" | "labels">): ReadonlySet<string> =>
  new Set([
    ...regionsIn(labels),
    ...peers
      .nodes()
      .flatMap(({ alive, facts }) => (alive && facts["region"] !== undefined ? [String(facts["region"])] : [])),
  ]);

/** Remembers what it was given, and asks again after a failure. */
function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let known: Promise<T> | undefined;
  return () => {
    known ??= ask().catch((error: unknown) => {
      known = undefined;
      throw error;
    });
    return known;
  };
}
