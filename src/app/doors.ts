/** Every door of this program. This is the only file outside of a door that names one. */
import type { Door } from "#door/door.ts";
import { buildDoor } from "#doors/build/door.ts";
import { shellDoor } from "#doors/shell/door.ts";

/** In the order of help, labels and the reference. `job submit` uses the first that takes command lines. */
export const doors: readonly Door[] = [shellDoor, buildDoor];

/** Names of future doors, and our own: callers cannot use them for their own kinds. */
export const reservedNames: readonly string[] = ["batch", "ci", "console", "deploy", "millrace"];
