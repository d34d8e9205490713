/**
 * A command that makes deciding throw (K12). Poison is a getter and cannot be sent over the network, so a mark is sent
 * instead, and the getter is planted where the command arrives.
 */
import type { Command } from "#kernel/model/command.ts";
import type { ShardRequest } from "#shard/transport/protocol.ts";

/**
 * The property to poison, by its path into the command, how many reads it survives first, and whether it then throws an
 * error or another value.
 */
export type Poison = { readonly path: readonly string[]; readonly reads: number; readonly bare?: boolean };
type Poisoned = { poison?: Poison };

export const poisoned = <C extends Command>(command: C, poison: Poison): C => ({ ...command, poison });

export const isPoisoned = (request: ShardRequest): boolean => request.kind === "command" && "poison" in request.command;

/** Whether a poison has taken effect: one that was read too seldom leaves a valid command. */
export type PoisonState = { fired: boolean };

export function plantPoison(request: ShardRequest, dose: PoisonState): ShardRequest {
  if (request.kind !== "command") return request;
  const { poison } = request.command as Poisoned;
  if (poison === undefined) return request;
  delete (request.command as Poisoned).poison;
  let owner = request.command as unknown as Record<string, unknown>;
  for (const name of poison.path.slice(0, -1)) {
    const next = owner[name];
    if (typeof next !== "object" || next === null) return request;
    owner = next as Record<string, unknown>;
  }
  const name = poison.path.at(-1) ?? "";
  const value = owner[name];
  let reads = 0;
  Object.defineProperty(owner, name, {
    enumerable: true,
    configurable: true,
    get() {
      reads += 1;
      if (reads <= poison.reads) return value;
      dose.fired = true;
      const why = `${poisonWord}: ${poison.path.join(".")}`;
      throw poison.bare ? ({ toString: () => why } as Error) : new Error(why);
    },
  });
  return request;
}

/** The start of every error message that a poison causes. */
export const poisonWord = "poisoned";

/** Where a submission may be poisoned: each property is read at another point of deciding. */
export const poisons: readonly { readonly path: readonly string[] }[] = [
  { path: ["name"] },
  { path: ["spec"] },
  { path: ["priority"] },
  { path: ["stages"] },
  { path: ["stages", "0"] },
  { path: ["stages", "0", "needs"] },
  { path: ["stages", "0", "tasks"] },
  { path: ["stages", "0", "name"] },
  { path: ["deadlineMs"] },
  { path: ["payloadHash"] },
];

/** Accepts any work. */
export const greedy = {
  kind: "reserve",
  executor: "poisoner",
  prefer: ["host-0"],
  count: 1,
  start: false,
  nonce: "",
} as const;
