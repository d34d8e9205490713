/** The deploy door: releases of a service, from a commit to machines. */
import { defineDoor } from "#door/door.ts";
import { deployCommands } from "./commands/commands.ts";
import { DeployConfig } from "./config.ts";
import { deployEndpoints } from "./endpoints.ts";
import { deployKinds } from "./kinds.ts";
import { viewEndpoints } from "./view/endpoints.ts";

export const deployDoor = defineDoor({
  name: "deploy",
  about: "Releases: builds a commit, rolls it out to machines in waves, and rolls back what is not healthy.",
  section: { about: "releases", schema: DeployConfig },
  hides: ({ signingKey }) => (signingKey === undefined ? [] : [signingKey]),
  kinds: [deployKinds],
  keepsResults: true,
  commands: deployCommands,
  endpoints: [...deployEndpoints, ...viewEndpoints],
  whyPath: (job, [of]) =>
    `/v1/deploy/releases/${encodeURIComponent(job)}/why${of === undefined ? "" : `?of=${encodeURIComponent(of)}`}`,
  pages: [{ path: "releases", title: "Releases", module: "pages/doors/deploy/releases.tsx" }],
  open: async (ports, settings) => (await import("./serve.ts")).openDeploy(ports, settings),
});
