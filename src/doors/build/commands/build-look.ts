import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { BuildWords, ReportWords } from "./build-words.ts";
import { command, serverFlags, type World } from "#door/command.ts";

/** The build that a command is about, or a word on how to name it. */
function buildIdOf(name: string, [buildId]: readonly string[], world: Pick<World, "note">): string | undefined {
  if (buildId === undefined)
    world.note(`${name}: name the build, for example: millrace ${name} j0-1 (millrace build list shows them)`);
  return buildId;
}

export const buildShow = command({
  name: "build show",
  about: "Show a build and its actions, or what one of its actions made.",
  words: "<build> [action]",
  positionalsMax: 2,
  takesRest: false,
  flags: { ...serverFlags, all: { type: "boolean", about: "those that ended well, too" } },
  examples: ["millrace build show j0-1", "millrace build show j0-1 bread"],
  async run({ positionals, values }, world) {
    const buildId = buildIdOf("build show", positionals, world);
    if (buildId === undefined) return 2;
    const [, key] = positionals;
    const { builds } = await import("./build-server.ts");
    const { actionLine, buildLine, reportLines } = await import("./build-words.ts");
    const server = await world.http(values);
    if (key !== undefined) {
      const report = await builds<ReportWords>(server, `/${buildId}/actions/${encodeURIComponent(key)}`);
      for (const line of values.json ? [JSON.stringify(report)] : reportLines(report)) world.out(line);
      return 0;
    }
    const build = await builds<BuildWords>(server, `/${buildId}`);
    if (values.json) world.out(JSON.stringify(build));
    else {
      world.out(buildLine(build));
      const isTelling = ({ state }: { readonly state: string }): boolean => state !== "succeeded" && state !== "cached";
      const shown = (build.actions ?? []).filter((action) => values.all || isTelling(action));
      for (const action of shown) world.out(actionLine(action));
    }
    return 0;
  },
});

export const buildWatch = command({
  name: "build watch",
  about: "Show what happens to a build until it has ended, through restarts of the node.",
  words: "<build>",
  positionalsMax: 1,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace build watch j0-1"],
  async run({ positionals, values }, world) {
    const buildId = buildIdOf("build watch", positionals, world);
    if (buildId === undefined) return 2;
    const { watchBuild } = await import("./build-server.ts");
    return await watchBuild(await world.http(values), buildId, values, world);
  },
});

export const buildCancel = command({
  name: "build cancel",
  about: "Stop a build and everything of it that runs.",
  words: "<build>",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...serverFlags, reason: { type: "string", value: "TEXT", about: "shown to whoever looks at it" } },
  examples: ["millrace build cancel j0-1 --reason 'wrong branch'"],
  async run({ positionals, values }, world) {
    const buildId = buildIdOf("build cancel", positionals, world);
    if (buildId === undefined) return 2;
    const { builds } = await import("./build-server.ts");
    const query = values.reason === undefined ? "" : `?${new URLSearchParams({ reason: values.reason }).toString()}`;
    const path = `/${buildId}/cancel${query}`;
    const server = await world.http(values);
    const answer = await builds<{ readonly phase: string; readonly cancelled: boolean }>(server, path, {
      method: "POST",
    });
    if (values.json) world.out(JSON.stringify(answer));
    else world.out(answer.cancelled ? `${buildId} ${answer.phase}` : `${buildId} had already ended: ${answer.phase}`);
    return answer.cancelled ? 0 : 1;
  },
});

export const buildList = command({
  name: "build list",
  about: "List builds: what runs first, then what has ended.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...serverFlags,
    limit: { type: "string", value: "NUMBER", about: "at most so many (20)" },
    cursor: { type: "string", value: "CURSOR", about: "go on where the last list ended" },
  },
  examples: ["millrace build list"],
  async run({ values }, world) {
    const { builds } = await import("./build-server.ts");
    const { buildRows } = await import("./build-words.ts");
    const query = new URLSearchParams({ limit: values.limit ?? "20", ...(values.cursor && { cursor: values.cursor }) });
    const page = await builds<{ readonly builds: readonly BuildWords[]; readonly cursor?: string }>(
      await world.http(values),
      `?${query.toString()}`,
    );
    if (values.json) for (const build of page.builds) world.out(JSON.stringify(build));
    else if (page.builds.length === 0) world.out("no builds yet; submit one with: millrace build submit build.yaml");
    else for (const line of buildRows(page.builds)) world.out(line);
    if (page.cursor !== undefined && values.json) world.out(JSON.stringify({ kind: "more", cursor: page.cursor }));
    else if (page.cursor !== undefined) world.note(`more: millrace build list --cursor ${page.cursor}`);
    return 0;
  },
});

export const buildGet = command({
  name: "build get",
  about: "Fetch a file that an action of a build made, to a file or to the standard output.",
  words: "<build> <action> <output> [file]",
  positionalsMax: 4,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace build get j0-1 bread bread.txt loaf.txt"],
  async run({ positionals: [buildId, key, path, file], values }, world) {
    if (buildId === undefined || key === undefined || path === undefined) {
      world.note("build get: name the build, the action and the output, as millrace build show tells them");
      return 2;
    }
    const { builds } = await import("./build-server.ts");
    const server = await world.http(values);
    const { outputs } = await builds<ReportWords>(server, `/${buildId}/actions/${encodeURIComponent(key)}`);
    const output = outputs.find((one) => one.path === path);
    if (output?.blob === undefined) {
      const known = outputs.flatMap(({ path: other, blob }) => (blob === undefined ? [] : [other])).join(", ");
      world.note(`build get: ${key} made no file ${path}; it made ${known || "none"}`);
      return 1;
    }
    const isEmpty = output.blob.endsWith("/0"); // no store keeps those
    const { body } = isEmpty ? {} : await server.ask(`/v1/build-cache/blobs/${output.blob}`, "fetch output");
    const source = body ? Readable.fromWeb(body) : Readable.from([]);
    if (file === undefined) await pipeline(source, process.stdout, { end: false });
    else await pipeline(source, createWriteStream(file, { mode: output.executable === true ? 0o755 : 0o644 }));
    return 0;
  },
});
