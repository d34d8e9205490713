/**
 * Decides whether a local caller of this node is one of its own tasks. Tasks that share the machine's network could
 * otherwise pass for any local caller.
 *
 * Nothing is checked while no task shares the network, which is the usual case. A task may have connected and ended
 * before its connection is checked, so callers are also checked for a while after the last such task has ended.
 *
 * TC1 While it matters, a caller counts as a task unless it is seen to be none: its socket belongs to another user than
 *     tasks have or, if tasks have this process's user, to a process that the launcher did not start.
 */
import { networkInterfaces } from "node:os";
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import { localSockets, type ConnectionEnds, type LocalSocket } from "#worker/process/sockets/local-sockets.ts";
import type { End } from "#worker/process/protocol.ts";
import { descendsFrom, socketHolders } from "#worker/process/sockets/socket-holders.ts";

export type CallerVerdict = "no" | "task" | "unclear";

export type TaskCallersOptions = {
  readonly clock: Clock;
  /** The users of tasks, if they have separate users. */
  readonly uids: { readonly first: number; readonly count: number } | undefined;
  readonly launcherPid: () => number;
};

const graceMs = 10 * 60_000;
/** More at once are refused without a check. */
const waitingMax = 1_000;

type Waiting = { readonly ends: ConnectionEnds; readonly resolve: (verdict: CallerVerdict) => void };

export class TaskCallers {
  readonly #options: TaskCallersOptions;
  #running = 0;
  #lastEndMonoMs = Number.NEGATIVE_INFINITY;
  #waiting: Waiting[] = [];
  #isLooking = false;

  constructor(options: TaskCallersOptions) {
    this.#options = options;
  }

  /** A task shares the machine's network until then. One that may have left processes never ends for this purpose. */
  sharing(end: Promise<End>): void {
    this.#running += 1;
    const over = (): void => {
      this.#running -= 1;
      this.#lastEndMonoMs = this.#options.clock.monotonicMs();
    };
    end.then(
      ({ note }) => {
        if (note === undefined) over();
      },
      (error: unknown) => {
        if (isFault(error)) over(); // the launcher died, and its runs with it
      },
    );
  }

  get matters(): boolean {
    return this.#running > 0 || this.#options.clock.monotonicMs() - this.#lastEndMonoMs < graceMs;
  }

  /** Whether a task is at the other end of a connection; `ends` is undefined if the connection is gone. */
  isTask(ends: ConnectionEnds | undefined): CallerVerdict | Promise<CallerVerdict> {
    if (!this.matters || (ends && !isOnThisMachine(ends))) return "no";
    if (!ends || this.#waiting.length >= waitingMax) return "unclear";
    return new Promise((resolve) => {
      this.#waiting.push({ ends, resolve });
      if (!this.#isLooking) void this.#look();
    });
  }

  /** One check answers all callers that came before it began. */
  async #look(): Promise<void> {
    this.#isLooking = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      const verdicts = await this.#judged(batch).catch(() => []);
      for (const [at, { resolve }] of batch.entries()) resolve(verdicts[at] ?? "unclear");
    }
    this.#isLooking = false;
  }

  async #judged(batch: readonly Waiting[]): Promise<readonly CallerVerdict[]> {
    const sockets = await localSockets();
    const found = batch.map(({ ends }) => sockets.otherEndOf(ends));
    const { uids } = this.#options;
    if (uids) return found.map((socket) => byUser(socket, uids));
    const own = process.getuid?.();
    const isOwn = (socket: LocalSocket | undefined): socket is LocalSocket =>
      socket?.uid === own && socket !== undefined;
    const holders = await socketHolders(new Set(found.filter(isOwn).map(({ inode }) => inode)));
    return found.map((socket) => {
      if (!socket || socket.inode === 0) return "unclear";
      return isOwn(socket) ? this.#byHolders(holders.get(socket.inode) ?? []) : "no";
    });
  }

  #byHolders(pids: readonly number[]): CallerVerdict {
    const launcher = this.#options.launcherPid();
    const areTasks = pids.map((pid) => descendsFrom(pid, launcher));
    if (areTasks.includes(true)) return "task";
    return pids.length === 0 || areTasks.includes(undefined) ? "unclear" : "no";
  }
}

function byUser(
  socket: LocalSocket | undefined,
  uids: { readonly first: number; readonly count: number },
): CallerVerdict {
  if (!socket || socket.inode === 0) return "unclear";
  return socket.uid >= uids.first && socket.uid < uids.first + uids.count ? "task" : "no";
}

/** A program may connect from any address of the machine. */
function isOnThisMachine({ remoteAddress, localAddress }: ConnectionEnds): boolean {
  const plain = remoteAddress.replace(/^::ffff:/, "");
  if (remoteAddress === localAddress || plain === "::1" || plain.startsWith("127.")) return true;
  return Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === plain));
}
