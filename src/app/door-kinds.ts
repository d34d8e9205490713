/** Which door each kind of work belongs to. */
import type { Door } from "#door/door.ts";
import { KindTable } from "#shard/door-kinds.ts";
import { doors, reservedNames } from "./doors.ts";

export const kindTableOf = (of: readonly Door[]): KindTable =>
  new KindTable(
    of.flatMap(({ kinds }) => kinds),
    reservedNames,
  );

export const kindTable = kindTableOf(doors);

/** The door whose jobs carry this name; undefined: work of a kind that callers made up. */
export const doorOfJob = (name: string, of: readonly Door[] = doors): Door | undefined =>
  of.find(({ kinds }) => kinds.some(({ door }) => door === name));
