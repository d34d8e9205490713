/**
 * The node's side of a launcher: starts one, or connects to the one that an earlier node process left, and asks it to
 * run commands. Starting a process costs this process only a message.
 */
import { randomBytes } from "node:crypto";
import { Fault } from "#base/fault.ts";
import { connectLauncher, type Link, type LinkOptions } from "./link.ts";
import { Lanes } from "./lanes.ts";
import { machineMs } from "./launcher/machine-time.ts";
import type {
  Boxes,
  CommandSignal,
  End,
  GroupKind,
  KillReason,
  Request,
  RunView,
  StartRequest,
  LauncherMessage,
  Usage,
} from "./protocol.ts";

export type SpawnerOptions = LinkOptions & { readonly log: (line: string) => void };

export type ProcessSpec = Omit<StartRequest, "op" | "id" | "claimUntilMs"> & {
  /** How long its claim is still valid, asked now and then: the run ends with it. Undefined: it has no claim. */
  readonly leftMs?: (() => number) | undefined;
};

export type Running = {
  readonly id: string;
  readonly tag: string;
  readonly lane: number;
  /** Rejects with a Fault "unavailable" if the launcher died; its processes are dead then, too. */
  readonly end: Promise<End>;
  signal(name: "SIGTERM" | "SIGINT" | "SIGQUIT" | "SIGHUP"): void;
  /** To the command alone. */
  signalCommand(name: CommandSignal): void;
  kill(why: KillReason): void;
  /** Undefined if it cannot be frozen or has ended; otherwise what it has used so far. */
  freeze(): Promise<Usage | undefined>;
  thaw(): void;
  /** Its end was handled: no later process of this node needs to know about it. */
  forget(): void;
};

/** Started before this node process. */
export type Found = Running & {
  readonly note: string | undefined;
  /** The folder of its streams. */
  readonly folder: string;
  /** Its lane may be in use again. */
  readonly hasEnded: boolean;
};

const defaultLeaseMs = 30_000;
const forgetMs = 100;
const forgottenMax = 100;

export class Spawner implements AsyncDisposable {
  readonly lanes: Lanes;
  /** Lanes of our own user, beside lanes with separate users. */
  readonly ownLanes: Lanes;
  /** Runs that started before this node process, running or ended. To be adopted, or killed and forgotten. */
  readonly found: readonly Found[];
  readonly #options: SpawnerOptions;
  readonly #runs = new Map<string, Followed>();
  #link: Link;
  #lastId = 0;
  readonly #life = randomBytes(6).toString("hex");
  #isClosed = false;
  #cancelRenewal: () => void = () => {};
  /** Not sent yet. */
  #forgotten: string[] = [];
  #cancelForgetting: (() => void) | undefined;
  #renewEveryMs = 0;
  #boxes: Boxes | undefined;

  private constructor(options: SpawnerOptions, link: Link) {
    this.#options = options;
    this.#link = link;
    const { lanes, toolLanes = 0, ownLanes = 0, uidBase } = options;
    this.lanes = new Lanes(this.canFreeze ? lanes : lanes - toolLanes, uidBase);
    this.ownLanes = new Lanes(ownLanes, undefined, lanes);
    this.found = link.welcome.runs.map((view) => ({
      ...this.#follow(view, defaultLeaseMs),
      note: view.note,
      folder: view.folder,
      hasEnded: view.end !== undefined,
    }));
    this.#listen(link);
    this.#renewLater();
  }

  static async open(options: SpawnerOptions): Promise<Spawner> {
    return new Spawner(options, await connectLauncher(options));
  }

  get groups(): { readonly kind: GroupKind } & Pick<Link["welcome"], "controllers" | "missing"> {
    const { groups: kind, controllers, missing } = this.#link.welcome;
    return { kind, controllers, missing };
  }

  /** Whether a run can get its lane's own network. */
  get hasNetworks(): boolean {
    return this.#link.welcome.networks;
  }

  /** Whether runs can be frozen. */
  get canFreeze(): boolean {
    return this.#link.welcome.freezes;
  }

  get launcherPid(): number {
    return this.#link.welcome.pid;
  }

  /** Sets how sandboxes are made, for runs that are started with a `box`. */
  useBoxes(boxes: Boxes): void {
    this.#boxes = boxes;
    this.#send({ op: "boxes", boxes });
  }

  /** The lane must have been lent. */
  start(spec: ProcessSpec): Running {
    check(spec);
    this.#lastId += 1;
    const id = `${this.#life}-${this.#lastId}`;
    const { leftMs, ...request } = spec;
    const followed = this.#follow({ id, tag: spec.tag, lane: spec.lane }, spec.leaseMs, leftMs);
    const claim = leftMs ? { claimUntilMs: claimEnd(leftMs) } : {};
    // While a launcher is replaced nothing can be started, and the next one would not know the run.
    if (!this.#send({ op: "start", id, ...request, ...claim })) this.#lose(followed, "the launcher is being replaced");
    if (spec.leaseMs / 3 < this.#renewEveryMs) {
      this.#cancelRenewal();
      this.#renewLater();
    }
    return followed;
  }

  /** Without `quit`, runs continue until their lease ends, and the next process of this node finds them. */
  async close({ quit }: { readonly quit: boolean }): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelRenewal();
    if (quit) this.#send({ op: "quit" });
    else this.#send();
    await (quit ? this.#link.closed : this.#link.leave());
    for (const followed of this.#runs.values()) this.#lose(followed, "the spawner was closed");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close({ quit: true });
  }

  #follow({ id, tag, lane, end }: Omit<RunView, "folder">, leaseMs: number, leftMs?: () => number): Followed {
    const ended = Promise.withResolvers<End>();
    ended.promise.catch(() => {});
    let frozen: PromiseWithResolvers<Usage | undefined> | undefined;
    const followed: Followed = {
      id,
      tag,
      lane,
      leaseMs,
      leftMs,
      end: ended.promise,
      settle: ended,
      signal: (name) => void this.#send({ op: "signal", id, signal: name }),
      signalCommand: (name) => void this.#send({ op: "signal-command", id, signal: name }),
      kill: (why) => void this.#send({ op: "kill", id, why }),
      freeze: () => {
        if (!this.#runs.has(id)) return Promise.resolve(undefined);
        if (!frozen) {
          frozen = Promise.withResolvers();
          this.#send({ op: "freeze", id });
        }
        return frozen.promise;
      },
      frozen: (usage) => {
        frozen?.resolve(usage);
        frozen = undefined;
      },
      thaw: () => void this.#send({ op: "thaw", id }),
      forget: () => {
        this.#runs.delete(id);
        this.#forgetSoon(id);
      },
    };
    if (end) ended.resolve(end);
    else this.#runs.set(id, followed);
    return followed;
  }

  #listen(link: Link): void {
    link.listen((news) => this.#hear(news));
    void link.closed.then(() => {
      if (!this.#isClosed) void this.#repair();
    });
  }

  #hear(news: LauncherMessage): void {
    if (news.ev === "ended") {
      const followed = this.#runs.get(news.id);
      this.#runs.delete(news.id);
      followed?.frozen(undefined);
      followed?.settle.resolve(news.end);
    } else if (news.ev === "frozen") {
      this.#runs.get(news.id)?.frozen(news.isStill ? news.usage : undefined);
    } else if (news.ev === "trouble") this.#options.log(`launcher: ${news.line}`);
  }

  /** A new launcher cleans up after the old one before it sends its welcome, so the old runs are dead by then. */
  async #repair(): Promise<void> {
    const { log, clock } = this.#options;
    const lost = [...this.#runs.values()];
    for (let tries = 0; !this.#isClosed; tries += 1) {
      try {
        this.#link = await connectLauncher(this.#options);
        break;
      } catch (error) {
        log(`launcher: ${String(error)}`);
        await clock.sleep(Math.min(5_000, 100 * 2 ** tries));
      }
    }
    const known = new Set(this.#link.welcome.runs.map(({ id }) => id));
    for (const followed of lost) if (!known.has(followed.id)) this.#lose(followed, "the launcher died");
    for (const { id, end } of this.#link.welcome.runs) if (end) this.#hear({ ev: "ended", id, end });
    if (this.#isClosed) return;
    if (this.#boxes) this.#send({ op: "boxes", boxes: this.#boxes });
    this.#listen(this.#link);
  }

  #lose(followed: Followed, why: string): void {
    this.#runs.delete(followed.id);
    followed.frozen(undefined);
    followed.settle.reject(new Fault("unavailable", "run process", { tag: followed.tag, why }));
  }

  /** Sent with the next message: a message wakes the launcher, and this one is not urgent. */
  #forgetSoon(id: string): void {
    this.#forgotten.push(id);
    if (this.#forgotten.length >= forgottenMax) this.#send();
    else this.#cancelForgetting ??= this.#options.clock.after(forgetMs, () => void this.#send());
  }

  /** "forget" goes first, because the next run may use the same folder. */
  #send(...requests: readonly Request[]): boolean {
    this.#cancelForgetting?.();
    this.#cancelForgetting = undefined;
    const ids = this.#forgotten;
    this.#forgotten = [];
    return ids.length === 0 ? this.#link.send(...requests) : this.#link.send({ op: "forget", ids }, ...requests);
  }

  #renewLater(): void {
    let shortestMs = defaultLeaseMs;
    for (const { leaseMs } of this.#runs.values()) shortestMs = Math.min(shortestMs, leaseMs);
    this.#renewEveryMs = Math.max(50, shortestMs / 3);
    this.#cancelRenewal = this.#options.clock.after(this.#renewEveryMs, () => {
      const byLease = Map.groupBy(this.#runs.values(), ({ leaseMs }) => leaseMs);
      for (const [leaseMs, runs] of byLease) this.#send({ op: "lease", ids: runs.map(({ id }) => id), leaseMs });
      this.#tellClaims();
      this.#renewLater();
    });
  }

  #tellClaims(): void {
    const untilMs: Record<string, number> = {};
    for (const { id, leftMs } of this.#runs.values()) if (leftMs) untilMs[id] = claimEnd(leftMs);
    if (Object.keys(untilMs).length > 0) this.#send({ op: "claims", untilMs });
  }
}

const claimEnd = (leftMs: () => number): number => {
  // Read the clock first: if the machine sleeps now, the run ends too early rather than too late.
  const nowMs = machineMs();
  return nowMs + leftMs();
};

type Followed = Running & {
  readonly leaseMs: number;
  readonly leftMs: (() => number) | undefined;
  readonly settle: PromiseWithResolvers<End>;
  /** Resolves a freeze request with the launcher's answer. */
  frozen(usage: Usage | undefined): void;
};

function check({ argv, env, cwd }: ProcessSpec): void {
  const refuse = (why: string): never => {
    throw new Fault("invalid", "run process", { why });
  };
  if (argv.length === 0 || argv[0] === "") refuse("no program is named");
  if (argv.some((word) => word.includes("\0"))) refuse("an argument contains NUL");
  if (cwd.includes("\0")) refuse("the folder's name contains NUL");
  for (const [key, value] of Object.entries(env))
    if (key === "" || key.includes("=") || key.includes("\0") || value.includes("\0"))
      refuse(`the variable ${JSON.stringify(key)} cannot be set`);
}
