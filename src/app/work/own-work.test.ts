import { deepEqual, equal, throws } from "node:assert/strict";
import { test } from "node:test";
import { actionKind } from "#doors/build/plan.ts";
import { kinds } from "#doors/shell/plan.ts";
import { kindTable } from "#app/door-kinds.ts";
import { ownPlanners, ownRunners } from "./own-work.ts";

const of = (door: string) => ({ task: { door } }) as never;
const done = { kind: "done", payload: "" } as const;

test("a node runs a kind of work only in jobs of its door", async () => {
  const runner = Object.assign(async () => done, { prepares: true });
  const own = ownRunners({ [actionKind]: runner }, kindTable)[actionKind];
  deepEqual(await own?.(of("build")), done);
  deepEqual(await own?.(of("own")), {
    kind: "failed",
    reason: "user-failure",
    message: "build.action is run in jobs of the door build only",
  });
  equal(own?.prepares, true);
});

test("a node plans a kind of stage only in jobs of its door", async () => {
  const skip = { kind: "skip", reason: "" } as const;
  const own = ownPlanners({ [kinds.gate]: () => skip }, kindTable)[kinds.gate];
  deepEqual(await own?.({} as never, of("shell")), skip);
  deepEqual(await own?.({} as never, of("own")), {
    kind: "fail",
    reason: "shell.gate is run in jobs of the door shell only",
  });
});

test("a kind that is run and belongs to no door stops the node from starting", () => {
  throws(() => ownRunners({ "new.kind": async () => done }, kindTable), /new\.kind is run here and belongs to no door/);
});
