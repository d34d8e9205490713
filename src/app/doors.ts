/** Every door of this program. This is the only file outside of a door that names one. */
import type { Door } from "#door/door.ts";
import { batchDoor } from "#doors/batch/door.ts";
import { buildDoor } from "#doors/build/door.ts";
import { ciDoor } from "#doors/ci/door.ts";
import { deployDoor } from "#doors/deploy/door.ts";
import { shellDoor } from "#doors/shell/door.ts";

/** In the order of help, labels and the reference. The first that takes command lines is what `job submit` is for. */
export const doors: readonly Door[] = [shellDoor, buildDoor, ciDoor, batchDoor, deployDoor];

/** Names of doors to come, and our own: callers cannot use them for kinds of their own. */
export const reservedNames: readonly string[] = ["ci", "console", "millrace"];
