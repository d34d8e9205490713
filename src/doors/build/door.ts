/** The build door: caches for build tools, remote execution of their actions, and builds described in a file. */
import { defineDoor } from "#door/door.ts";
import { commands } from "./commands/commands.ts";
import { BuildConfig } from "./config.ts";
import { buildEndpoints } from "./http/endpoints.ts";
import { buildKinds } from "./kinds.ts";
import { traceIn } from "./plan.ts";
import { shows } from "./shows.ts";

export const buildDoor = defineDoor({
  name: "build",
  about: "Caches for build tools, remote execution of their actions, and builds described in a file.",
  section: { about: "The cache for build tools.", schema: BuildConfig },
  kinds: buildKinds,
  commands,
  endpoints: buildEndpoints,
  shows,
  traceIn,
  pages: [],
  jobPart: { module: "pages/doors/build.tsx" },
  open: async (ports, settings) => (await import("./open/open.ts")).openBuild(ports, settings),
});
