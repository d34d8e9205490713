/**
 * What a node and its launcher say to each other. The launcher starts processes for the node, because starting one
 * from a process with much memory stops it for milliseconds. It outlives the node, but what it runs does not outlive
 * its lease.
 *
 * N1 A run ends exactly once, and is told until the node says that it may be forgotten.
 * N2 A run is told as ended only when nothing of its tree can do anything any more, or when the end says that something
 *    may.
 * N3 A run that nobody renews is ended by the launcher's own clock. One with a claim that is told ends with the claim,
 *    whoever renews it, also when the machine slept through the claim's end.
 * N4 Whatever the launcher started dies when the launcher does.
 */
export const launcherVersion = 8;

/** Zero or absent is without limit. */
export type Limits = {
  readonly memoryBytes?: number;
  /** Of one processor; 1.5 is one and a half. */
  readonly cpus?: number;
  readonly pids?: number;
  /** Of one file. */
  readonly fileBytes?: number;
  readonly openFiles?: number;
};

export type CappedFile = { readonly path: string; readonly bytesMax: number };

export type StartRequest = {
  readonly op: "start";
  readonly id: string;
  /** For people, in logs. */
  readonly tag: string;
  /** Whatever a later life of the node has to know to go on with it. */
  readonly note?: string;
  /** One run at a time in each; with user ids apart, each lane has its own. */
  readonly lane: number;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly stdout: CappedFile;
  /** The same as `stdout` puts both into one file, in order; its end is then told of the first. */
  readonly stderr: CappedFile;
  readonly limits: Limits;
  /** Zero is without end. */
  readonly timeoutMs: number;
  readonly leaseMs: number;
  /**
   * When its claim ends, on the machine's own time (machine-time.ts). For runs that change the world outside: others
   * may do the same from then on.
   */
  readonly claimUntilMs?: number;
  /** From the moment that the node is known to be gone; as long as is left of the lease, unless said. */
  readonly orphanMs?: number;
  /** It runs in a process namespace of its own: nothing in there can reach the lane, and it dies as one. */
  readonly sealed: boolean;
  /** "own" is the lane's, with nobody else in it: where the launcher has networks. The machine's, unless said. */
  readonly network?: Network;
  /** Pipes in the file system that it reads from and prints to: somebody has both open, and talks with it. */
  readonly talk?: { readonly stdin: string; readonly stdout: string };
  /** Where the sandbox says (file descriptor 9) which process is the first of its namespace. */
  readonly statusPath?: string;
  /** In a sandbox such as `boxes` says: then the command, its variables and its folder are those in there. */
  readonly box?: {
    /** With everything in it that `folderNames` says, its streams and its status among them. */
    readonly folder: string;
    /** Of whatever runs in this lane next: its sandbox is made as soon as this has ended, and waits there. */
    readonly next?: string;
  };
};

/** What a folder has for whoever runs in it: a root to write to, and files to print to. */
export const folderNames = { root: "root", stdout: "stdout", stderr: "stderr", status: "status" } as const;

/** What sandboxes are made of: the words of the program that makes one, with its root between them. */
export type Boxes = {
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly network: Network;
};

export type Network = "own" | "host";

export type KillReason = "cancelled" | "lost" | "drained";

export type Request =
  | StartRequest
  | {
      readonly op: "hello";
      readonly version: number;
      /** What runs in lane n is user and group `uidBase + n`; without it, those of the launcher. */
      readonly uidBase?: number;
      /**
       * Lanes stay the launcher's user, and every order gives that up by setpriv(1). Then what runs cannot reach its
       * lane, and the lane can be used again, although the run is not sealed.
       */
      readonly drops?: boolean;
      /** With less than this free where runs have their folders, the one that wrote most is ended. Zero: never. */
      readonly freeBytesMin?: number;
      /** Of everything that runs here together, where control groups count it. Zero: as much as there is. */
      readonly memoryBytesMax?: number;
      /** Lanes that are made ready before anybody asks. */
      readonly lanes: number;
      /** How many of these, the last, are for what stays: of no use where runs cannot be frozen. */
      readonly toolLanes?: number;
      /** Lanes behind these, always of the launcher's user, that are made when they are asked for. */
      readonly ownLanes?: number;
    }
  /** From here on. */
  | { readonly op: "boxes"; readonly boxes: Boxes }
  | { readonly op: "lease"; readonly ids: readonly string[]; readonly leaseMs: number }
  /** Until when the claims of runs are good, by id. */
  | { readonly op: "claims"; readonly untilMs: Readonly<Record<string, number>> }
  | { readonly op: "signal"; readonly id: string; readonly signal: "SIGTERM" | "SIGINT" | "SIGQUIT" | "SIGHUP" }
  | { readonly op: "kill"; readonly id: string; readonly why: KillReason }
  | { readonly op: "forget"; readonly ids: readonly string[] }
  /** Where control groups can: nothing of the run does anything from the answer on, until it may again. */
  | { readonly op: "freeze"; readonly id: string }
  | { readonly op: "thaw"; readonly id: string }
  /** Ends everything that runs, and then the launcher. */
  | { readonly op: "quit" };

export type Usage = {
  readonly cpuMs: number;
  /** Of all processes together, with their files in memory. */
  readonly memoryPeakBytes?: number;
  /** From and to devices. */
  readonly readBytes?: number;
  readonly writtenBytes?: number;
};

export type EndReason =
  | "exited"
  | "timed-out"
  | "lease-ran-out"
  /** The disk was nearly full, and nobody had written more. */
  | "disk-full"
  /** The lane itself was killed from outside, or by what ran in it. */
  | "lane-lost"
  | "not-started"
  | KillReason;

export type StreamEnd = { readonly bytes: number; readonly leftOutBytes: number };

export type End = {
  readonly why: EndReason;
  /** 128 + n for one that signal n ended, as in a shell. */
  readonly exitCode: number;
  readonly outOfMemory: boolean;
  readonly usage: Usage;
  readonly stdout: StreamEnd;
  readonly stderr: StreamEnd;
  readonly startedAtMs: number;
  readonly ranMs: number;
  /** Between the order and the start: getting a lane ready. */
  readonly readyMs: number;
  readonly note?: string;
};

/** How limits are enforced and trees are found: control groups of either kind, or limits of single processes. */
export type GroupKind = "cgroup-v1" | "cgroup-v2" | "none";

export type RunView = {
  readonly id: string;
  readonly tag: string;
  readonly note?: string;
  readonly lane: number;
  /** Where its streams are. */
  readonly folder: string;
  readonly end?: End;
};

export type Told =
  | {
      readonly ev: "welcome";
      readonly version: number;
      readonly pid: number;
      readonly groups: GroupKind;
      readonly controllers: readonly string[];
      /** What runs do without for want of control groups, and why. */
      readonly missing: readonly string[];
      /** Whether lanes with users of their own have networks of their own. */
      readonly networks: boolean;
      /** Whether runs can be frozen. */
      readonly freezes: boolean;
      readonly runs: readonly RunView[];
    }
  | { readonly ev: "ended"; readonly id: string; readonly end: End }
  /** With what it has used so far. `isStill`: it can do nothing. */
  | { readonly ev: "frozen"; readonly id: string; readonly isStill: boolean; readonly usage: Usage }
  | { readonly ev: "trouble"; readonly line: string };
