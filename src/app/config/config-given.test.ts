import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import fc from "fast-check";
import { isFault } from "#base/fault.ts";
import { Config, readConfig, type ConfigSources } from "./config.ts";
import { givenByEnvironment } from "./config-given.ts";
import { settingsOf, variableOf } from "./config-settings.ts";
import { checkJoin } from "./join-check.ts";
import { checkText } from "#door/yaml-file.ts";

const settings = settingsOf(Config);

async function problem(sources: ConfigSources): Promise<string> {
  let why = "";
  await rejects(readConfig(sources), (error) => {
    why = isFault(error, "invalid") ? String(error.facts["why"]) : String(error);
    return isFault(error, "invalid");
  });
  return why;
}

describe("a setting", () => {
  test("has one variable, and no two have the same", () => {
    const variables = [...settings.values()].flatMap(({ variable }) => variable ?? []);
    equal(new Set(variables).size, variables.length);
    ok(settings.size > 100, `${settings.size}`);
    equal(variableOf("node.stopWithin"), "MILLRACE_NODE_STOP_WITHIN");
    equal(settings.get("blobs.authoritative.names.url")?.variable, "MILLRACE_BLOBS_AUTHORITATIVE_NAMES_URL");
    equal(settings.get("node")?.variable, undefined, "$MILLRACE_NODE says which node to ask");
  });

  test("is taken from the flags before the environment, and from there before the file", async () => {
    const folder = await mkdtemp(join(tmpdir(), "millrace-given-"));
    try {
      const file = join(folder, "c.yaml");
      await writeFile(file, "worker: { slots: 2, labels: [gpu=yes] }\ncluster: { name: mill }\n");
      const env = { MILLRACE_WORKER_SLOTS: "3", MILLRACE_CLUSTER_SHARDS: "4", MILLRACE_NODE: "unix:/tmp/x", HOME: "/" };
      const config = await readConfig({ file, env, set: ["worker.slots=5"] });
      deepEqual([config.worker.slots, config.worker.labels], [5, ["gpu=yes"]]);
      deepEqual([config.cluster.name, config.cluster.shards], ["mill", 4]);
      equal((await readConfig({ file, env })).worker.slots, 3);
      equal((await readConfig({ file })).worker.slots, 2);
      await writeFile(file, "worker\n");
      match(await problem({ file, env }), /expected object/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("is parsed by its type: text unchanged, lists with commas, the rest as in a file", async () => {
    const set = [
      "cluster.name=0123",
      "edge.listen=127.0.0.1:1,127.0.0.1:2",
      "worker.labels=[a=b, c=d]",
      "worker.enabled=false",
      "blobs.sizeMax=1GiB",
      "mesh={join: [10.0.0.5:7946]}",
      "node.stopWithin=3s",
    ];
    const config = await readConfig({ set });
    equal(config.cluster.name, "0123");
    deepEqual(config.edge.listen, ["127.0.0.1:1", "127.0.0.1:2"]);
    deepEqual(config.worker.labels, ["a=b", "c=d"]);
    equal(config.worker.enabled, false);
    deepEqual([config.blobs.kind, config.blobs.kind === "disk" && config.blobs.sizeMax], ["disk", 1024 ** 3]);
    deepEqual([config.mesh?.join, config.node.stopWithin], [["10.0.0.5:7946"], 3_000]);
    deepEqual((await readConfig({ set: ["edge.listen="] })).edge.listen, []);
  });

  test("means the same in a file, as a flag and in the environment", async () => {
    const cases = [
      ["worker.slots", "7"],
      ["node.stopWithin", "90s"],
      ["journal.directory", "/some/where"],
      ["mesh.profile", "wan"],
      ["worker.labels", "[a=b]"],
      ["build.execute", "false"],
    ] as const;
    for (const [path, text] of cases) {
      const [section, name] = path.split(".");
      const kind = section === "journal" ? "kind: sqlite, " : "";
      const written = checkText(`${section}: { ${kind}${name}: ${text} }`, Config, { doing: "test" });
      deepEqual(await readConfig({ set: [`${path}=${text}`] }), written, path);
      deepEqual(await readConfig({ env: { [variableOf(path)]: text } }), written, path);
    }
  });

  test("that does not exist is refused by its name, with a suggestion", async () => {
    match(
      await problem({ set: ["worker.slot=3"] }),
      /^--set worker\.slot: there is no such setting \(did you mean worker\.slots\?\)$/,
    );
    match(
      await problem({ env: { MILLRACE_WORKER_SLOT: "3" } }),
      /^\$MILLRACE_WORKER_SLOT: there is no such setting \(did you mean \$MILLRACE_WORKER_SLOTS\?\)$/,
    );
    match(await problem({ env: { MILLRACE_EDGE_PORT: "8980" } }), /^\$MILLRACE_EDGE_PORT: there is no such setting/);
    match(await problem({ set: ["worker.slots"] }), /write a setting and its value/);
  });

  test("that is wrong is refused by where it came from, also beside a file", async () => {
    match(await problem({ set: ["worker.slots=many"] }), /^worker\.slots \(--set worker\.slots\): /);
    match(await problem({ env: { MILLRACE_WORKER_SLOTS: "0" } }), /^worker\.slots \(\$MILLRACE_WORKER_SLOTS\): /);
    match(await problem({ set: ["worker.labels=[a"] }), /^--set worker\.labels: it is not valid YAML$/);
    match(
      await problem({ set: ["edge.listen=127.0.0.1:1,0.0.0.0:80"] }),
      /^edge\.listen\.1 \(--set edge\.listen\): without authentication/,
    );
    match(await problem({ set: ["blobs.kind=directory"] }), /^blobs\.directory: /);
  });

  test("is not confused with variables that commands read and tasks have: a node may start in a task", () => {
    const root = join(import.meta.dirname, "../..");
    const files = globSync("**/*.ts", { cwd: root }).filter((file) => !/\.test\.ts$|(^|\/)testing\//.test(file));
    const texts = files.map((file) => readFileSync(join(root, file), "utf8"));
    const names = texts.flatMap((text) => text.match(/(?<=")MILLRACE_[A-Z_]+(?=")|\bMILLRACE_[A-Z_]+(?=:)/g) ?? []);
    ok(new Set(names).size > 15);
    const env = Object.fromEntries(names.map((name) => [name, "x"]));
    deepEqual(givenByEnvironment(env, new Map()), []);
  });

  test("is not confused with variables of container platforms and other commands", async () => {
    const env = {
      MILLRACE_PORT: "tcp://10.0.0.1:8980",
      MILLRACE_SERVICE_HOST: "10.0.0.1",
      MILLRACE_SERVICE_PORT_EDGE: "8980",
      MILLRACE_GOSSIP_PORT_7946_UDP_ADDR: "10.0.0.2",
      MILLRACE_TASK: "t0-1",
      MILLRACE_TOKEN: "secret",
      MILLRACE_WORKER_SLOTS: "",
    };
    deepEqual(await readConfig({ env }), await readConfig());
  });

  test("any input gives a configuration or a Fault", async () => {
    const paths = fc.constantFrom(...settings.keys());
    await fc.assert(
      fc.asyncProperty(paths, fc.string({ maxLength: 30 }), async (path, text) => {
        await readConfig({ set: [`${path}=${text}`] }).catch((error: unknown) => ok(isFault(error), String(error)));
      }),
      { numRuns: 150 },
    );
  });
});

test("the smallest complete configuration in the docs is ten lines, and valid", async () => {
  const page = await readFile(join(import.meta.dirname, "../../../docs/how-to/configure.md"), "utf8");
  const text = /```yaml\n(# ten lines[\s\S]*?)```/.exec(page)?.[1] ?? "";
  const lines = text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"));
  equal(lines.length, 10, text);
  const config = checkText(text, Config, { doing: "read docs/how-to/configure.md" });
  deepEqual(config.edge.listen, ["127.0.0.1:8980"]);
  ok(config.blobs.kind === "disk" && config.blobs.directory !== undefined && config.blobs.authoritative);
  equal(config.blobs.sizeMax, 200 * 1024 ** 3);
  equal(config.worker.slots, 8);
  ok(config.mesh && config.mesh.join.length > 0 && config.mesh.listen.endsWith(":7946"));
  equal(config.journal.kind, "postgres");
  checkJoin(config); // and one that may join others
});
