/**
 * Repositories that other nodes keep: this node has a copy of each, and hands pushes to the node that keeps it.
 *
 * RL1 A copy is what its keeper had when it was last asked; a keeper that cannot be asked makes the repository
 *     unavailable, so that nothing starts from what is not current.
 * RL2 A push is answered when its keeper has announced it, as if it had come there.
 */
import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import type { Repository } from "./book.ts";
import { git } from "./git.ts";
import {
  Answer,
  Changes,
  digestIn,
  hashOfState,
  hasMax,
  keepBytes,
  read,
  refsOfState,
  relayCalls,
  type RelayPorts,
  stateOf,
} from "./relay.ts";
import { isRef, isSha } from "./names.ts";
import type { Pusher } from "./pushes.ts";
import { Turns } from "./turns.ts";

/** Calls to other nodes of the cluster. */
export type OtherNodes = {
  /** Undefined: it is not there. */
  addressOf(node: string): string | undefined;
  call(address: string, method: string, body: unknown, signal: AbortSignal): Promise<unknown>;
};

export type RelayedPorts = Pick<RelayPorts, "store" | "spool"> & {
  readonly folder: string;
  readonly others: OtherNodes;
};

const callMsMax = 600_000;

export class Relayed {
  readonly #ports: RelayedPorts;
  readonly #turns = new Turns();

  constructor(ports: RelayedPorts) {
    this.#ports = ports;
  }

  /** The folder of a copy that has all that its keeper has. */
  async upToDate(repository: Repository): Promise<string> {
    const path = this.#path(repository);
    return await this.#turns.take(path, async () => {
      await createAt(path);
      const before = await stateOf(path);
      const { tenant, name } = repository;
      const has = [...new Set(refsOfState(before).values())].slice(0, hasMax);
      const asked = { tenant, name, known: hashOfState(before), has };
      const { state, pack } = Changes.parse(await this.#ask(repository, relayCalls.changes, asked));
      if (state === undefined) return path;
      if (pack !== undefined) {
        const input = read(this.#ports, tenant, digestIn(pack));
        await git(path, ["index-pack", "--stdin", "--fix-thin"], { input, timeoutMs: callMsMax });
      }
      await moveRefs(path, before, state);
      return path;
    });
  }

  /** What a push begins with. */
  async pushRefs(repository: Repository): Promise<Buffer<ArrayBuffer>> {
    const { tenant, name } = repository;
    return bytesIn(await this.#ask(repository, relayCalls.refs, { tenant, name }));
  }

  async push(
    repository: Repository,
    bytes: AsyncIterable<Uint8Array>,
    { name: pusher, isOperator }: Pusher,
  ): Promise<Buffer<ArrayBuffer>> {
    const { tenant, name } = repository;
    const body = await keepBytes(this.#ports, tenant, bytes);
    const asked = { tenant, name, body, pusher: { name: pusher, isOperator } };
    return bytesIn(await this.#ask(repository, relayCalls.push, asked));
  }

  async #ask({ name, node = "" }: Repository, method: string, body: unknown): Promise<unknown> {
    const address = this.#ports.others.addressOf(node);
    if (address === undefined)
      throw new Fault("unavailable", "use the repository", {
        repository: name,
        why: `${node} keeps it, and is not there`,
        try: "start that node again",
      });
    return await this.#ports.others.call(address, method, body, AbortSignal.timeout(callMsMax));
  }

  #path({ tenant, name, node }: Repository): string {
    const hash = createHash("sha256")
      .update(JSON.stringify([tenant, name.toLowerCase(), node]))
      .digest("hex")
      .slice(0, 40);
    return join(this.#ports.folder, `${hash}.git`);
  }
}

const bytesIn = (answer: unknown): Buffer<ArrayBuffer> => Buffer.from(Answer.parse(answer).base64, "base64");

/** Refs are moved in one step; objects that none leads to any more stay. */
async function moveRefs(path: string, before: string, after: string): Promise<void> {
  const [was, is] = [refsOfState(before), refsOfState(after)];
  const named = [...is].filter(([ref, sha]) => isRef(ref) && isSha(sha));
  const moves = named.filter(([ref, sha]) => was.get(ref) !== sha).map(([ref, sha]) => `update ${ref} ${sha}\n`);
  const gone = [...was.keys()].filter((ref) => !is.has(ref)).map((ref) => `delete ${ref}\n`);
  if (moves.length + gone.length > 0)
    await git(path, ["update-ref", "--stdin"], { input: [...gone, ...moves].join("") });
  const [head = ""] = after.split("\n", 1);
  if (isRef(head)) await git(path, ["symbolic-ref", "HEAD", head]);
}

async function createAt(path: string): Promise<void> {
  if (existsSync(path)) return;
  const fresh = `${path}.${randomUUID()}`;
  await mkdir(fresh, { recursive: true, mode: 0o700 });
  try {
    await git(fresh, ["init", "--quiet", "--bare", "--initial-branch=main", "--template=", "."]);
    await rename(fresh, path);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}
