/**
 * The CI door: workflows in the words of GitHub Actions. So far it has what needs no node: it checks workflows, and
 * runs them on this machine. Runs as jobs of a node stand on the same compiler, planner and runner.
 */
import { defineDoor } from "#door/door.ts";
import { ciLint } from "./commands/lint.ts";
import { ciRun } from "./commands/run.ts";

export const ciDoor = defineDoor({
  name: "ci",
  about: "Workflows in the words of GitHub Actions.",
  kinds: [],
  commands: [ciRun, ciLint],
  endpoints: [],
  pages: [],
  open: () => Promise.resolve({}),
});
