/** Items 50, 65 and 88 when everything is killed: started work goes on, and nothing is left behind. */
import { deepEqual, equal } from "node:assert/strict";
import { isExecuting, make, onWorkers, printed, ranWell, sh, wait } from "#e2e/conformance/actions.ts";
import { needs, type Case } from "#e2e/conformance/case.ts";
import { leaveWhen } from "./operations.ts";

export const crashCases: readonly Case[] = [
  onWorkers(50, "names are known after the server was killed: of what has ended, and of what ran", async (lab) => {
    const crash = needs(lab.crash, "a way to kill the server");
    const { name: ended } = await ranWell(lab, await sh(lab, "echo before"));
    const running = await leaveWhen(lab, "sleep 3; echo after", isExecuting);
    await crash();
    equal(await printed(lab, (await wait(lab, ended)).result, "stdout"), "before\n");
    equal(await printed(lab, (await wait(lab, running)).result, "stdout"), "after\n");
  }),
  onWorkers(65, "a worker that is lost loses no action", async (lab) => {
    const crash = needs(lab.crash, "a way to kill the server");
    const name = await leaveWhen(lab, "sleep 4; echo at last", isExecuting);
    await crash();
    const { result } = await wait(lab, name);
    deepEqual([result.exitCode, await printed(lab, result, "stdout")], [0, "at last\n"]);
  }),
  onWorkers(88, "after a crash there is room for actions, and nothing of before", async (lab) => {
    const crash = needs(lab.crash, "a way to kill the server");
    for (let time = 0; time < 3; time += 1)
      await leaveWhen(lab, `touch before-${time} /tmp/before-${time}; sleep 2`, isExecuting);
    await crash();
    const { digest } = await make(lab, ["/bin/sh", "-c", "ls -A; ls -A /tmp | grep before; true"]);
    equal(await printed(lab, (await ranWell(lab, digest)).result, "stdout"), "");
  }),
];
