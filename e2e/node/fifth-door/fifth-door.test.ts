/** A door is a value: one that is added to the list, and nowhere else, works in every part of the program. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { startNode } from "#app/compose/compose.ts";
import { apiDocument } from "#app/compose/api.ts";
import { configOf, readConfig } from "#app/config/config.ts";
import { configReference } from "#app/config/config-reference.ts";
import { kindTableOf } from "#app/door-kinds.ts";
import { doors } from "#app/doors.ts";
import { explainJob, followJob, showJob } from "#app/job-view.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { runLine } from "#cli/line.ts";
import { cliPage } from "#cli/reference.ts";
import { tableOf } from "#cli/table.ts";
import type { Door } from "#door/door.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import type { JobView } from "#kernel/read/query.ts";
import { clearAway } from "#testing/clear-away.ts";
import { teaDoor } from "./tea-door.ts";

const folder = await mkdtemp(join(tmpdir(), "millrace-tea-"));
const data = dataFolder(join(folder, "data"));
const tea = teaDoor("pages/tea.tsx");
const five = [...doors, tea];

const tokenOf = (name: string): string => `${name}-${"0123456789".repeat(4)}`;
const grant = (name: string, role: string) => {
  return { name, tenant: "default", roles: [role], sha256: tokenSha256(tokenOf(name)) };
};
const Config = configOf(five);
const config = Config.parse({
  cluster: { shards: 2 },
  journal: { kind: "memory" },
  edge: {
    listen: ["127.0.0.1:0"],
    identity: { tokens: [grant("ann", "member"), grant("victor", "viewer"), grant("ex", "executor")] },
  },
  tea: { cupsMax: 3 },
});
const node = await startNode(config, data, { log: () => {}, doors: five });
after(async () => {
  await node.stop();
  clearAway(folder);
});

const http = (name: string, path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`http://${node.edgeAddresses[0]}${path}`, {
    ...init,
    headers: { "content-type": "application/json", authorization: `Bearer ${tokenOf(name)}` },
  });

async function line(...args: readonly string[]) {
  const [out, notes]: [string[], string[]] = [[], []];
  const connect = () => Promise.reject(new Error("this is asked over HTTP"));
  const terminal = { env: {}, isTerminal: false, progress: () => {}, connect };
  const said = { out: (text: string) => void out.push(text), note: (text: string) => void notes.push(text) };
  const code = await runLine(args, { ...terminal, ...said }, tableOf(five));
  return { code, out, notes };
}

/** What is said of a job that ended while its watcher was cut off. */
function tellAnew(jobId: string, view: JobView): readonly string[] {
  const follower = followJob(jobId, { of: five });
  const stamp = { epoch: 1, seq: 1 };
  follower.lines({ kind: "snapshot", stamp, view: { ...view, phase: "RUNNING", tasks: [] } });
  return follower.lines({ kind: "snapshot", stamp, view });
}

describe("a fifth door", { timeout: 60_000 }, () => {
  test("its command submits a job by its route; its planner and its runner do the work", async () => {
    const { code, out, notes } = await line("tea", "brew", "oolong", "--data", data.path);
    deepEqual([code, notes], [0, []]);
    const [jobId = ""] = out;
    const follower = followJob(jobId, { of: five });
    for await (const message of node.client.watch(jobId, AbortSignal.timeout(30_000))) follower.lines(message);
    equal(follower.phase, "SUCCEEDED");
    const { view } = await node.client.job(jobId);
    const told = tellAnew(jobId, view);
    ok(told.includes("  pot/cup 3: done: a cup of oolong"), told.join("\n"));
    equal(view.tasks.filter(({ planning }) => !planning).length, 3);
    equal(showJob(jobId, view, 0, five).at(-1), "3 cups are on the table");
    deepEqual(explainJob(jobId, view, five), ["it has to draw for three minutes"]);
  });

  test("its command is in help and in the reference", async () => {
    match((await line("help")).out.join("\n"), /tea brew +Brew a pot of tea\./);
    match((await line("tea", "--help")).out.join("\n"), /tea brew/);
    match(cliPage(five), /## millrace tea brew/);
  });

  test("its section of the configuration is checked, documented, and given by file, flag or variable", async () => {
    match(
      configReference(Config),
      /\| `cupsMax` \| `MILLRACE_TEA_CUPS_MAX` \| integer 1-12 \| `2` \| Cups of one pot\. \|/,
    );
    const file = join(folder, "config.yaml");
    await writeFile(file, "tea:\n  cupMax: 3\n");
    await rejects(readConfig({ file, schema: Config }), /tea\.cupMax \(line 2\): .* \(did you mean cupsMax\?\)/);
    await rejects(readConfig({ set: ["tea.cupsMax=13"], schema: Config }), /tea\.cupsMax/);
    const read = await readConfig({ env: { MILLRACE_TEA_CUPS_MAX: "4" }, schema: Config });
    deepEqual((read as unknown as { readonly tea: object }).tea, { cupsMax: 4 });
    await rejects(readConfig({ set: ["tea.cupsMax=3"] }), /there is no such setting/, "without the door");
  });

  test("its route is in the OpenAPI document, validated, and judged by the policy", async () => {
    const { paths } = (await (await http("ann", "/v1/openapi.json")).json()) as {
      readonly paths: Readonly<Record<string, { readonly post?: { readonly summary: string } }>>;
    };
    equal(paths["/v1/tea"]?.post?.summary, "Brews a pot of tea.");
    ok(!JSON.stringify(apiDocument()).includes("/v1/tea"));
    const body = JSON.stringify({ leaf: "assam" });
    equal((await http("victor", "/v1/tea", { method: "POST", body })).status, 403);
    equal((await http("ann", "/v1/tea", { method: "POST", body: "{}" })).status, 400);
    const answer = await http("ann", "/v1/tea", { method: "POST", body });
    deepEqual([answer.status, ((await answer.json()) as { cupsMax: number }).cupsMax], [200, 3]);
  });

  test("its kinds and labels are the door's own, for all who submit or run work", () => {
    const table = kindTableOf(five);
    const tasks = { door: "tea", stages: [] };
    equal(table.refuseJob(tasks, { name: "eve", isOperator: false }), "no tea for eve");
    equal(table.refuseJob(tasks, { name: "ann", isOperator: false }), undefined);
    equal(kindTableOf(doors).doorOf("tea.brew"), undefined);
    deepEqual([table.isFree("tea"), table.isNodeLabel("door=tea")], [false, true]);
    deepEqual(
      node.labels.filter((label) => label.endsWith("=tea") || label.startsWith("plan=tea")),
      ["door=tea", "plan=tea/1"],
    );
  });

  test("its metrics and its route's are at /metrics", async () => {
    const text = await (await http("victor", "/metrics")).text();
    match(text, /^millrace_tea_cups_total [3-9]/m);
    match(text, /^millrace_http_requests_total\{endpoint="POST \/v1\/tea",status="200"\} [1-9]/m);
  });
});

describe("a door that does what it does not declare", () => {
  const start = (...more: readonly Door[]) =>
    startNode(config, dataFolder(join(folder, "broken")), { log: () => {}, doors: [...doors, ...more] });

  test("keeps its node from starting", async () => {
    await rejects(start({ ...tea, endpoints: [] }), /the door tea serves POST \/v1\/tea and does not list it/);
    await rejects(start({ ...tea, kinds: [] }), /the door tea runs tea\.brew and does not list it in its kinds/);
    await rejects(start(tea, tea), /two doors bring tea\.brew/);
  });
});
