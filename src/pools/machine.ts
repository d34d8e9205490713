/** A machine of a pool, whatever makes it: a pod, or what a command created. */

/** Why a machine did not start or has ended, in words that mean the same for all kinds of pools. */
export type ProblemReason =
  | "unschedulable"
  | "image-pull"
  | "configuration"
  | "out-of-memory"
  | "evicted"
  | "preempted"
  | "deadline"
  | "failed";

export type Problem = { readonly reason: ProblemReason; readonly message: string };

export type SeenMachine = {
  /** From 0 to the pool's ceiling: no two machines of a pool ever have the same. */
  readonly slot: number;
  /** Of this one machine: its slot's next one has another. */
  readonly id: string;
  readonly name: string;
  readonly template: string;
  /** What its worker's name begins with. */
  readonly worker: string;
  /** The registration that its token belongs to, and whose it is. */
  readonly registration: string;
  readonly phase: "starting" | "up" | "ended" | "leaving";
  readonly ageMs: number;
  /** Whether its token is known to have reached it. */
  readonly hasToken: boolean;
  readonly problem?: Problem | undefined;
};

/** A machine with what the queues say of its worker. */
export type Machine = SeenMachine & {
  /** `busy`: its worker holds a task. `idle`: it has asked for one. */
  readonly work: "none" | "idle" | "busy";
  /** For how long it has been so, as far as it was watched. */
  readonly forMs: number;
};

/** What a new machine is given. */
export type NewMachine = {
  readonly slot: number;
  readonly template: string;
  readonly worker: string;
  readonly registration: string;
  readonly token: string;
  /** The task that asked for it; it may run another. */
  readonly task: string | undefined;
};

/** What makes and removes the machines of one pool. */
export type MachineMaker = AsyncDisposable & {
  /** All that there are; undefined while that is not known. */
  seen(): readonly SeenMachine[] | undefined;
  /** Does nothing where the slot is taken: false. */
  create(wanted: NewMachine): Promise<boolean>;
  /** Gives the token to a machine that may not have got its own: false where it has. */
  giveToken(machine: SeenMachine, token: string, registration: string): Promise<boolean>;
  /** Does nothing where this machine is gone, or another has its slot. */
  remove(machine: SeenMachine): Promise<void>;
  /** What is known of a problem besides: events, the newest last. */
  events(machine: SeenMachine): Promise<readonly string[]>;
};
