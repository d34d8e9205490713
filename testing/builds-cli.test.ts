/** `millrace build` and `/v1/builds` against a real node. */
import { deepEqual, equal, match } from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { clearAway } from "./clear-away.ts";
import { cliLine } from "./cli-line.ts";

const isLinux = process.platform === "linux";

describe("millrace build", { skip: !isLinux && "needs linux: the sandbox", timeout: 120_000 }, () => {
  let path: string;
  let running: Running;

  before(async () => {
    path = await mkdtemp(join(tmpdir(), "millrace-builds-cli-"));
    await chmod(path, 0o711);
    const actionsIn = join(path, "actions");
    await mkdir(actionsIn, { mode: 0o711 });
    const config = Config.parse({ cluster: { shards: 2 }, edge: { listen: ["127.0.0.1:0"] }, worker: { actionsIn } });
    running = await startNode(config, dataFolder(join(path, "data")), { log: () => {} });
  });
  after(async () => {
    await running.stop();
    clearAway(path);
  });

  const run = (...args: readonly string[]) => cliLine(join(path, "data"), ...args);
  const write = async (name: string, text: string): Promise<string> => {
    await writeFile(join(path, name), text);
    return join(path, name);
  };
  const http = async (at: string, init: RequestInit = {}): Promise<Response> =>
    await fetch(`http://127.0.0.1:${running.edgePorts[0]}/v1/builds${at}`, {
      ...init,
      headers: {
        ...(init.body !== undefined && { "content-type": "application/json" }),
        ...(init.headers as Record<string, string>),
        authorization: `Bearer ${running.owner}`,
      },
    });

  test("before the first build, the list says how to submit one", async () => {
    deepEqual((await run("build", "list")).out, ["no builds yet; submit one with: millrace build submit build.yaml"]);
    deepEqual((await run("build", "list", "--json")).out, []);
  });

  test("files and folders beside the build file are inputs, with their modes and links", async () => {
    await mkdir(join(path, "src/empty"), { recursive: true });
    await write("src/corn", "corn\n");
    await symlink("corn", join(path, "src/again"));
    await write("mill", "#!/bin/sh\ncat src/corn src/again\ntest -d src/empty && echo empty\n");
    await chmod(join(path, "mill"), 0o755);
    const file = await write(
      "build.yaml",
      `{ name: flour, env: { LANG: C }, actions: { "grind it": {
        run: [./mill], inputs: [src, mill, { path: other/name, file: src/corn }], timeout: 1m } } }`,
    );
    const { code, out, notes } = await run("build", "submit", file, "--follow", "--key", "one");
    equal(code, 0, notes.join());
    match(out.at(-1) ?? "", /^j\S+ {2}succeeded {2}flour .* 1 succeeded$/);
    const build = out[0]?.split(" ")[0] ?? "";
    const shown = await run("build", "show", build, "grind it", "--json");
    const report = JSON.parse(shown.out[0] ?? "") as { readonly stdout: string; readonly state: string };
    equal(report.state, "succeeded");
    const printed = join(path, "printed");
    equal((await run("cache", "get", report.stdout, printed)).code, 0);
    equal(await readFile(printed, "utf8"), "corn\ncorn\nempty\n");
    match((await run("build", "submit", file, "--key", "one")).out[0] ?? "", /was submitted before under this key/);
    match((await run("build", "list")).out.join("\n"), /succeeded {2}\S+ {2}flour/);
    match((await run("build", "show", build)).out.join("\n"), /^j\S+ {2}succeeded.*1 succeeded$/);
    const cancelled = await run("build", "cancel", build);
    deepEqual([cancelled.code, cancelled.out], [1, [`${build} had already ended: succeeded`]]);
  });

  test("outputs are fetched, and a missing output is named", async () => {
    const line = "echo '#!/bin/sh' > out/run && chmod +x out/run && : > out/nothing";
    const made = { make: { run: line, outputs: ["out/run", "out/nothing"] } };
    const file = await write("made.json", JSON.stringify({ actions: made }));
    const { out } = await run("build", "submit", file, "--follow");
    const build = out[0]?.split(" ")[0] ?? "";
    const to = join(path, "fetched");
    equal((await run("build", "get", build, "make", "out/run", to)).code, 0);
    equal(await readFile(to, "utf8"), "#!/bin/sh\n");
    equal((await stat(to)).mode & 0o100, 0o100);
    equal((await run("build", "get", build, "make", "out/nothing", to)).code, 0);
    equal((await stat(to)).size, 0);
    const not = await run("build", "get", build, "make", "bread");
    deepEqual([not.code, not.notes], [1, ["build get: make made no file bread; it made out/nothing, out/run"]]);
  });

  test("`why` explains an action of a build that was not in the cache", async () => {
    const file = await write("miss.yaml", '{ actions: { rare: { run: "echo rare > o", outputs: [o] } } }');
    equal((await run("build", "submit", file, "--follow")).code, 0);
    match((await run("cache", "why", "--json")).out.join("\n"), /rare/);
  });

  test("a failed build says so, and in JSON the outcome of each action", async () => {
    const file = await write("bad.yaml", '{ actions: { bad: { run: "echo no corn >&2; exit 1" } } }');
    const { code, out } = await run("build", "submit", file, "--follow", "--json");
    equal(code, 1);
    type Line = { readonly phase: string; readonly changed: readonly { readonly state: string }[] };
    const last = JSON.parse(out.at(-1) ?? "") as Line;
    equal(last.phase, "failed");
    match(out.join("\n"), /"message":"exit code 1: no corn"/);
  });

  test("a mistake in the file is reported with its path, and a missing file by its name", async () => {
    const typo = await run("build", "submit", await write("typo.yaml", "actions:\n  a:\n    rum: true\n"));
    equal(typo.code, 1);
    match(typo.notes.join("\n"), /actions\.a\.rum \(line 3\): there is no such setting|actions\.a\.run/);
    const lost = await write("lost.yaml", "{ actions: { a: { run: cat x, inputs: [x] } } }");
    match((await run("build", "submit", lost)).notes.join("\n"), /read build file: not-found .*file=.*x/);
    const two = await write("two.yaml", "{ actions: { a: { run: a, inputs: [{ path: x, text: y, link: z }] } } }");
    match((await run("build", "submit", two)).notes.join("\n"), /say what it is with one of/);
    equal((await run("build", "submit")).code, 2);
    equal((await run("build", "show")).code, 2);
  });

  test("over HTTP: a document, a repeated request, a stream of events", async () => {
    const body = JSON.stringify({ name: "web", actions: { a: { run: "echo hello > o", outputs: ["o"] } } });
    const post = async (text = body) =>
      await http("", { method: "POST", body: text, headers: { "idempotency-key": "web-1" } });
    const first = await post();
    equal(first.status, 201);
    const { build } = (await first.json()) as { readonly build: string };
    equal(first.headers.get("location"), `/v1/builds/${build}`);
    const again = await post(body.replace("{", " { "));
    deepEqual([again.status, await again.json()], [200, { build, created: false }]);
    equal((await post(body.replace("hello", "goodbye"))).status, 409);
    const news = (await (await http(`/${build}/watch`)).text()).trimEnd().split("\n");
    match(news.at(-1) ?? "", /"phase":"succeeded".*"counts":\{"succeeded":1\}/);
    const made = (await (await http(`/${build}/actions/a`)).json()) as { readonly outputs: readonly object[] };
    deepEqual(made.outputs, [
      { path: "o", blob: "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03/6" },
    ]);
  });

  test("over HTTP: errors are reported, with the status that says whose mistake it is", async () => {
    const post = async (body: unknown) => await http("", { method: "POST", body: JSON.stringify(body) });
    equal((await http("", { method: "POST", body: "{" })).status, 400);
    equal((await post({ actions: { a: { run: "a", inputs: ["local"] } } })).status, 400);
    equal((await post({ actions: {} })).status, 400);
    const blob = `${"0".repeat(64)}/1`;
    const missing = await post({ actions: { a: { run: "a", inputs: [{ path: "x", blob }] } } });
    equal(missing.status, 412);
    deepEqual(((await missing.json()) as { readonly missing: unknown }).missing, [`blobs/${blob}`]);
    equal((await http("/j0-999")).status, 404);
    equal((await http("/j0-999/watch")).status, 404);
    equal((await http("/j0-1/nonsense")).status, 404);
    equal((await http("", { method: "DELETE" })).status, 405);
  });
});
