/**
 * The messages between a node and its launcher. The launcher starts processes for the node, because forking a process
 * with much memory blocks it for milliseconds. It outlives the node, but its runs do not outlive their leases.
 *
 * N1 A run ends exactly once, and its end is reported until the node says that it may be forgotten.
 * N2 A run is reported as ended only when no process of its tree can do anything any more, or the report says that some
 * may.
 * N3 A run whose lease is not renewed is ended by the launcher's own clock. A run with a known claim ends with the
 * claim, even if it is renewed, and even if the machine slept through the claim's end.
 * N4 Everything that the launcher started dies when the launcher does.
 */
export const launcherVersion = 9;

/** Zero or absent means no limit. */
export type Limits = {
  readonly memoryBytes?: number;
  /** In processors; 1.5 is one and a half. */
  readonly cpus?: number;
  readonly pids?: number;
  /** Per file. */
  readonly fileBytes?: number;
  readonly openFiles?: number;
};

export type CappedFile = { readonly path: string; readonly bytesMax: number };

export type StartRequest = {
  readonly op: "start";
  readonly id: string;
  /** For people, in logs. */
  readonly tag: string;
  /** What a later process of the node needs to continue the run. */
  readonly note?: string;
  /** One run at a time in each; with separate users, each lane has its own. */
  readonly lane: number;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly stdout: CappedFile;
  /** If equal to `stdout`, both share one file, in order; its tail is reported under stdout. */
  readonly stderr: CappedFile;
  readonly limits: Limits;
  /** Zero means no limit. */
  readonly timeoutMs: number;
  readonly leaseMs: number;
  /**
   * When its claim ends, in machine time (machine-time.ts). For runs with outside effects: other workers may run the
   * task from then on.
   */
  readonly claimUntilMs?: number;
  /** Counts from when the node is known to be gone; if left out, the rest of the lease. */
  readonly orphanMs?: number;
  /** It runs in a pid namespace of its own: its processes cannot reach the lane, and die together. */
  readonly sealed: boolean;
  /**
   * "own" is the lane's network, with no other processes in it, if the launcher has networks. Default: the machine's.
   */
  readonly network?: Network;
  /** Named pipes for its stdin and stdout: another process has both open, and talks with it. */
  readonly talk?: { readonly stdin: string; readonly stdout: string };
  /** Where the sandbox reports (file descriptor 9) its namespace's init process. */
  readonly statusPath?: string;
  /** Runs in a sandbox as set by `boxes`: then the command, its variables and its folder are those inside. */
  readonly box?: {
    /** Contains everything in `folderNames`, including its streams and status. */
    readonly folder: string;
    /** The folder of the next run in this lane: its sandbox is made as soon as this run has ended, and waits there. */
    readonly next?: string;
  };
};

/** What a run's folder contains: a root to write to, and files for output. */
export const folderNames = { root: "root", stdout: "stdout", stderr: "stderr", status: "status" } as const;

/** How sandboxes are made: the arguments of the program, before and after the root. */
export type Boxes = {
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly network: Network;
};

export type Network = "own" | "host";

/** What a command may be sent while it runs. */
export const commandSignals = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2"] as const;
export type CommandSignal = (typeof commandSignals)[number];

export type KillReason = "cancelled" | "lost" | "drained";

export type Request =
  | StartRequest
  | {
      readonly op: "hello";
      readonly version: number;
      /** Lane n runs as user and group `uidBase + n`; without it, as the launcher's. */
      readonly uidBase?: number;
      /**
       * Lanes keep the launcher's user, and every order drops to its own by setpriv(1). Then a run cannot reach its
       * lane, and the lane can be reused, although the run is not sealed.
       */
      readonly drops?: boolean;
      /** With less free space than this in the runs' folders, the run that wrote most is ended. Zero: never. */
      readonly freeBytesMin?: number;
      /** For all runs together, if control groups count it. Zero: no limit. */
      readonly memoryBytesMax?: number;
      /** Lanes that are prepared in advance. */
      readonly lanes: number;
      /** How many of these, the last ones, are for tools that stay: unused if runs cannot be frozen. */
      readonly toolLanes?: number;
      /** Further lanes that always have the launcher's user, created on demand. */
      readonly ownLanes?: number;
    }
  /** From now on. */
  | { readonly op: "boxes"; readonly boxes: Boxes }
  | { readonly op: "lease"; readonly ids: readonly string[]; readonly leaseMs: number }
  /** When the claims of runs end, by run id. */
  | { readonly op: "claims"; readonly untilMs: Readonly<Record<string, number>> }
  | { readonly op: "signal"; readonly id: string; readonly signal: "SIGTERM" | "SIGINT" | "SIGQUIT" | "SIGHUP" }
  /** To the command alone, not to what it has started. Only for runs that are not sealed. */
  | { readonly op: "signal-command"; readonly id: string; readonly signal: CommandSignal }
  | { readonly op: "kill"; readonly id: string; readonly why: KillReason }
  | { readonly op: "forget"; readonly ids: readonly string[] }
  /** If control groups allow it: no process of the run does anything from the answer on, until it is thawed. */
  | { readonly op: "freeze"; readonly id: string }
  | { readonly op: "thaw"; readonly id: string }
  /** Ends all runs, and then the launcher. */
  | { readonly op: "quit" };

export type Usage = {
  readonly cpuMs: number;
  /** Of all processes together, including files in memory. */
  readonly memoryPeakBytes?: number;
  /** From and to devices. */
  readonly readBytes?: number;
  readonly writtenBytes?: number;
};

export type EndReason =
  | "exited"
  | "timed-out"
  | "lease-ran-out"
  /** The disk was nearly full, and this run had written the most. */
  | "disk-full"
  /** The lane itself was killed, from outside or by its run. */
  | "lane-lost"
  | "not-started"
  | KillReason;

export type StreamEnd = { readonly bytes: number; readonly leftOutBytes: number };

export type End = {
  readonly why: EndReason;
  /** 128 + n if signal n ended it, as in a shell. */
  readonly exitCode: number;
  readonly outOfMemory: boolean;
  readonly usage: Usage;
  readonly stdout: StreamEnd;
  readonly stderr: StreamEnd;
  readonly startedAtMs: number;
  readonly ranMs: number;
  /** Between the order and the start: preparing a lane. */
  readonly readyMs: number;
  readonly note?: string;
};

/**
 * How limits are enforced and process trees are found: control groups of either version, or limits of single processes.
 */
export type GroupKind = "cgroup-v1" | "cgroup-v2" | "none";

export type RunView = {
  readonly id: string;
  readonly tag: string;
  readonly note?: string;
  readonly lane: number;
  /** The folder of its streams. */
  readonly folder: string;
  readonly end?: End;
};

export type LauncherMessage =
  | {
      readonly ev: "welcome";
      readonly version: number;
      readonly pid: number;
      readonly groups: GroupKind;
      readonly controllers: readonly string[];
      /** What runs lack without control groups, and why. */
      readonly missing: readonly string[];
      /** Whether lanes with separate users have separate networks. */
      readonly networks: boolean;
      /** Whether runs can be frozen. */
      readonly freezes: boolean;
      readonly runs: readonly RunView[];
    }
  | { readonly ev: "ended"; readonly id: string; readonly end: End }
  /** With its usage so far. `isStill`: no process can do anything. */
  | { readonly ev: "frozen"; readonly id: string; readonly isStill: boolean; readonly usage: Usage }
  | { readonly ev: "trouble"; readonly line: string };
