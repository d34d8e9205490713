/** Which doors this program has, and whose each kind of work is. */
import { batchDoorKinds } from "#doors/batch/kinds.ts";
import { buildKinds } from "#doors/build/kinds.ts";
import { shellDoorKinds } from "#doors/shell/kinds.ts";
import { KindTable } from "#shard/door-kinds.ts";

/** Names of doors to come, and our own. */
export const reservedDoors = ["ci", "console", "deploy", "millrace"] as const;

export const kindTable = new KindTable([shellDoorKinds, batchDoorKinds, ...buildKinds], reservedDoors);
