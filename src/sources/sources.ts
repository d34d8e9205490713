/** Repositories for all doors: registered by path or URL, or kept here and served to git. */
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { Spool } from "#blobs/spool.ts";
import type { Store } from "#blobs/store.ts";
import type { Records } from "#records/watch.ts";
import { bookOf, type Repository, type RepositoryBook } from "./book.ts";
import { Copies } from "./copies.ts";
import { setPull, type PullRefs } from "./pulls.ts";
import { type Pusher, Pushes } from "./pushes.ts";
import { checkRemote, type RemoteRules } from "./remote.ts";
import { serveRelay } from "./relay.ts";
import { type OtherNodes, Relayed } from "./relayed.ts";
import { serveGit, type GitCall, type Keeper } from "./smart-http.ts";
import { Snapshots } from "./snapshots.ts";

export type SourcePorts = {
  readonly node: string;
  readonly folder: string;
  readonly records: Records;
  readonly store: Store;
  readonly spool: Spool;
  readonly clock: Clock;
  readonly rules: RemoteRules;
  readonly pushBytesMax: number;
  /** Left out: this node knows no others. */
  readonly others?: OtherNodes;
};

export class Sources {
  readonly book: RepositoryBook;
  readonly copies: Copies;
  readonly pushes: Pushes;
  readonly snapshots: Snapshots;
  readonly #ports: SourcePorts;
  readonly #relayed: Relayed | undefined;

  constructor(ports: SourcePorts) {
    this.#ports = ports;
    this.book = bookOf(ports.records);
    const relayed = join(ports.folder, "sources", "relayed");
    this.copies = new Copies(join(ports.folder, "sources"), { ...ports.rules, ownFolder: relayed });
    this.#relayed = ports.others && new Relayed({ ...ports, folder: relayed, others: ports.others });
    this.pushes = new Pushes(ports.records, () => ports.clock.wallMs());
    this.snapshots = new Snapshots({ ...ports, copies: this.copies });
  }

  /** By a path or a URL, which is fetched at once so that what cannot be fetched is said now. */
  async register(tenant: string, name: string, url: string): Promise<Repository> {
    checkRemote(url, this.#ports.rules);
    const repository = { tenant, name, url };
    await this.copies.fetch(repository);
    await this.book.put(repository);
    return repository;
  }

  /** An empty repository on this node, to be pushed to. */
  async keep(tenant: string, name: string): Promise<Repository> {
    const known = await this.book.get(tenant, name);
    if (known)
      throw new Fault("invalid", "keep a repository", { repository: name, why: "there is one with this name" });
    const repository = { tenant, name, node: this.#ports.node };
    await this.book.put(repository);
    await this.copies.create(repository);
    return repository;
  }

  async get(tenant: string, name: string): Promise<Repository> {
    const found = await this.book.get(tenant, name);
    if (!found) throw new Fault("not-found", "find the repository", { repository: name.slice(0, 201) });
    if (found.node === undefined || found.node === this.#ports.node) return found;
    if (this.#relayed) return { ...found, url: await this.#relayed.upToDate(found) };
    throw new Fault("unavailable", "use the repository", {
      repository: found.name,
      why: `${found.node} keeps it: call there`,
    });
  }

  /** Whether it is this node's to start what follows from its pushes. */
  async isOwn(tenant: string, name: string): Promise<boolean> {
    const found = await this.book.get(tenant, name);
    return found?.node === undefined || found.node === this.#ports.node;
  }

  /** What other nodes ask of this one. */
  get calls(): ReturnType<typeof serveRelay> {
    return serveRelay({ ...this.#ports, copies: this.copies, pushes: this.pushes, book: this.book });
  }

  setPull(
    repository: Repository,
    pull: { readonly number: number; readonly head: string; readonly base: string },
  ): Promise<PullRefs> {
    return setPull(this.copies, repository, pull);
  }

  /** Answers a call of git, whose caller was checked. */
  serve(
    request: Request,
    asked: { readonly repository: Repository; readonly call: GitCall; readonly pusher: Pusher },
  ): Promise<Response> {
    const ports = { ...this.#ports, copies: this.copies, pushes: this.pushes };
    return serveGit(ports, request, { ...asked, keeper: this.#keeperOf(asked.repository, asked.pusher) });
  }

  #keeperOf(repository: Repository, pusher: Pusher): Keeper | undefined {
    const relayed = this.#relayed;
    if (repository.node === undefined || repository.node === this.#ports.node || !relayed) return undefined;
    return {
      pushRefs: () => relayed.pushRefs(repository),
      push: (bytes) => relayed.push(repository, bytes, pusher),
    };
  }

  /** PS1: what was pushed right before the node went down. */
  async announceMissed(): Promise<void> {
    for (const repository of await this.book.list(undefined)) {
      if (repository.url !== undefined || repository.node !== this.#ports.node) continue;
      const path = await this.copies.create(repository);
      await this.copies.turns.take(path, () =>
        this.pushes.announce(repository, path, { name: "unknown", isOperator: false }),
      );
    }
  }
}
