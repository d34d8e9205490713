/** The node's membership in the mesh: its tags, and the other members. */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import { addressText, type Address } from "#mesh/address.ts";
import type { MeshEvent } from "#mesh/machine/core.ts";
import { Mesh, type MeshOptions, type MeshStatus } from "#mesh/mesh.ts";
import { profiles } from "#mesh/machine/profile.ts";
import { parseEdgeAddress } from "#app/config/edge-config.ts";
import { MeshKey, meshKeyBytes, meshListenDefault, type MeshConfig } from "#app/config/mesh-config.ts";
import { peerOf, tagsOf, type NodeFacts, type PeerView } from "#app/peers/mesh-tags.ts";

export type MeshParts = {
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Called periodically: the node's current facts, for members that reach it at this host. */
  readonly facts: (host: string) => NodeFacts;
  readonly log: (line: string) => void;
};

export type PeersView = MeshStatus & { readonly peers: readonly PeerView[] };

export type RunningMesh = {
  readonly mesh: Mesh;
  peers(): PeersView;
  /** Leaves the mesh and closes. */
  stop(): Promise<void>;
};

/** How often the node updates its tags. */
const factsEveryMs = 1_000;

export async function startMesh(config: MeshConfig, parts: MeshParts): Promise<RunningMesh> {
  const { name, clock, random, facts, log } = parts;
  const mesh = await openSomewhere(config, log, async (listen) => ({
    name,
    listen,
    advertise: config.advertise === undefined ? undefined : parseEdgeAddress(config.advertise),
    tags: ({ host }) => tagsOf(facts(host)),
    times: profiles[config.profile],
    label: config.label,
    keys: await keysOf(config),
    compresses: config.compress,
    seeds: config.join,
    clock,
    random: random.fork("mesh"),
    randomBytes: (count) => new Uint8Array(randomBytes(count)),
    log,
  }));
  mesh.listen((event) => {
    const line = lineOf(event);
    if (line !== undefined) log(`mesh: ${line}`);
  });
  const stopFacts = repeat(clock, () => mesh.setTags(tagsOf(facts(mesh.address.host))), log);
  return {
    mesh,
    peers: () => ({ ...mesh.status(), peers: mesh.members().map(peerOf).toSorted(byName) }),
    async stop() {
      stopFacts();
      await mesh.leave();
      await mesh.close();
    },
  };
}

/** With the default port, a node takes another one if that is taken: probably by another node here. */
async function openSomewhere(
  config: MeshConfig,
  log: (line: string) => void,
  options: (listen: Address) => Promise<MeshOptions>,
): Promise<Mesh> {
  const listen = parseEdgeAddress(config.listen);
  try {
    return await Mesh.open(await options(listen));
  } catch (error) {
    if (config.listen !== meshListenDefault || !isFault(error, "exhausted")) throw error;
  }
  const mesh = await Mesh.open(await options({ ...listen, port: 0 }));
  log(`mesh: another program listens on ${config.listen}: this node is at ${addressText(mesh.address)} instead`);
  return mesh;
}

const byName = (a: PeerView, b: PeerView): number => (a.name < b.name ? -1 : 1);

function repeat(clock: Clock, run: () => void, log: (line: string) => void): () => void {
  let stop = (): void => {};
  const again = (): void => {
    stop = clock.after(factsEveryMs, () => {
      try {
        run();
      } catch (error) {
        log(`mesh: ${error instanceof Error ? error.message : String(error)}`);
      }
      again();
    });
  };
  again();
  return () => stop();
}

async function keysOf({ keys, keysFile }: MeshConfig): Promise<readonly Uint8Array[]> {
  const listed = keysFile === undefined ? [] : await keysIn(keysFile);
  return [...keys, ...listed].map(meshKeyBytes);
}

async function keysIn(file: string): Promise<readonly string[]> {
  try {
    return z
      .array(MeshKey)
      .min(1)
      .max(16)
      .parse(JSON.parse(await readFile(file, "utf8")));
  } catch (error) {
    const why = "a JSON list of keys of 16, 24 or 32 bytes in base64 is wanted"; // never its content
    throw new Fault("invalid", "read mesh keys", { file, why }, error instanceof z.ZodError ? undefined : error);
  }
}

function lineOf(event: MeshEvent): string | undefined {
  switch (event.kind) {
    case "join":
      return `${event.member.name} is here`;
    case "leave":
      return `${event.member.name} has left`;
    case "fail":
      return `${event.member.name} has failed`;
    case "conflict":
      return `two members are called ${event.name}: ${event.ours.host} and ${event.theirs.host}`;
    default:
      return undefined;
  }
}
