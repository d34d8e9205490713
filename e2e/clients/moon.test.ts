/** moon: two clones of one workspace, over gRPC, with zstd, and over HTTP, where it stores results as JSON. */
import { equal } from "node:assert/strict";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { startCaches, type Caches } from "./caches.ts";
import { npmTool, type NpmTool } from "./npm-tool.ts";
import { run, type Ran } from "./processes.ts";
import { makeCheckout, temporaryFolder, treeText, type Files } from "./workspace.ts";

const version = "@moonrepo/cli@2.5.5";
const projects = ["wheat", "rye"];
const script = [
  "mkdir -p out/sub",
  "cp src.txt out/copy.txt",
  "chmod +x out/copy.txt",
  ": >out/empty.txt",
  "(cat src.txt; head -c 6000000 /dev/zero) >out/sub/big.bin",
].join("\n");

const project = `language: bash
tasks:
  build:
    command: 'sh b.sh'
    toolchains: [system]
    inputs: ['src.txt', 'b.sh']
    outputs: ['out']
`;

type Variant = { readonly api: "grpc" | "http"; readonly compression: "none" | "zstd" };

const variants: readonly Variant[] = [
  { api: "grpc", compression: "none" },
  { api: "grpc", compression: "zstd" },
  { api: "http", compression: "none" },
];

const files = (url: string, { api, compression }: Variant): Files => ({
  ".moon/workspace.yml": [
    "projects:",
    ...projects.map((name) => `  ${name}: 'p/${name}'`),
    "telemetry: false",
    "remote:",
    `  api: ${api}`,
    `  host: '${url.replace("http:", `${api}:`)}'`,
    "  auth:",
    "    token: MILL_TOKEN",
    "  cache:",
    `    compression: ${compression}`,
    "    verifyIntegrity: true",
    "",
  ].join("\n"),
  ...Object.fromEntries(
    projects.flatMap((name) => [
      [`p/${name}/moon.yml`, project],
      [`p/${name}/src.txt`, `${name}\n`],
      [`p/${name}/b.sh`, script],
    ]),
  ),
});

describe("moon", () => {
  let tool: NpmTool;
  before(async () => (tool = await npmTool(version)));

  async function build(cwd: string, caches: Caches, token: string, variant: Variant): Promise<Ran> {
    await makeCheckout(cwd, files(caches.url, variant));
    const env = { MILL_TOKEN: token, MOON_TOOLCHAIN_FORCE_GLOBALS: "true", NO_COLOR: "1" };
    const args = ["run", ...projects.map((name) => `${name}:build`), "--log", "debug"];
    return await run(join("folder" in tool ? tool.folder : "", ".bin", "moon"), args, { cwd, env });
  }

  for (const variant of variants)
    test(`${variant.api}, ${variant.compression}: the second clone builds nothing`, async (context) => {
      if ("why" in tool) return context.skip(`needs moon: ${tool.why}`);
      await using caches = await startCaches();
      await using work = await temporaryFolder();
      const one = join(work.path, "one");
      const cold = await build(one, caches, caches.token, variant);
      equal(cold.code, 0, cold.output);
      const hits = ({ output }: Ran): number => output.split("status=CachedFromRemote").length - 1;
      // moon does not wait for its connection: lookups before that are misses, without a request.
      let two = "";
      let warm: Ran | undefined;
      for (let clone = 2; clone <= 4 && (!warm || hits(warm) === 0); clone += 1) {
        two = join(work.path, `clone ${clone}`);
        warm = await build(two, caches, caches.readOnlyToken, variant);
        equal(warm.code, 0, warm.output);
      }
      equal(warm && hits(warm), projects.length, warm?.output ?? "");
      for (const name of projects)
        equal(await treeText(join(two, "p", name, "out")), await treeText(join(one, "p", name, "out")));
    });
});
