/** Which doors this program has, and which door each kind of work belongs to. */
import { buildKinds } from "#doors/build/kinds.ts";
import { shellDoorKinds } from "#doors/shell/kinds.ts";
import { KindTable } from "#shard/door-kinds.ts";

/** Names of future doors, and our own. */
export const reservedDoors = ["batch", "ci", "console", "deploy", "millrace"] as const;

export const kindTable = new KindTable([shellDoorKinds, ...buildKinds], reservedDoors);
