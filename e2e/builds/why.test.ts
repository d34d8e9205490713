/** "Why is it queued?" and "why did it run again?", against a whole node. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import type { WhyAnswer } from "#doors/build/why/ask.ts";
import { until } from "#testing/until.ts";
import type { Digest } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { Bench, Lab } from "#e2e/node/build/execution-lab.ts";
import { showJob } from "#app/job-view.ts";

const isLinux = process.platform === "linux";
const secrets = { mill: randomUUID(), bakery: randomUUID() };
const tokens = Object.entries(secrets).map(([name, secret]) => ({
  name,
  tenant: name,
  roles: ["member", "action-cache-writer"],
  sha256: createHash("sha256").update(secret).digest("hex"),
}));
/** So that tests do not share cached results. */
const salted = (line: string): string => `${line} # ${randomUUID()}`;
const text = ({ hash, sizeBytes }: Digest): string => `${hash}/${sizeBytes}`;

describe("why", { skip: !isLinux && "needs linux: the sandbox", timeout: 200_000 }, () => {
  let lab: Lab;
  let bench: Bench;
  before(async () => {
    const edge = { listen: ["127.0.0.1:0"], identity: { tokens } };
    const cluster = { shards: 1 };
    lab = await Lab.open({ cluster, edge, worker: { slots: 1 }, build: { leaveGrace: "1s", noWorkerWithin: "10m" } });
    bench = new Bench(lab.client(secrets.mill));
    await bench.execute(await bench.sh(salted("true"))); // from then on the shard knows the workers
  });
  after(async () => await lab[Symbol.asyncDispose]());

  const ask = async (path: string, secret: string = secrets.mill): Promise<Response> =>
    await fetch(`http://127.0.0.1:${lab.node?.edgePorts[0]}/v1/why${path}`, {
      headers: { authorization: `Bearer ${secret}` },
    });
  const why = async (of: string, key?: string): Promise<WhyAnswer> => {
    const query = new URLSearchParams({ of, ...(key !== undefined && { key }) });
    const response = await ask(`?${query.toString()}`);
    equal(response.status, 200, await response.clone().text());
    return (await response.json()) as WhyAnswer;
  };
  /** Starts it, and returns the operation's name; `stop` disconnects. */
  const begun = async (action: Digest) => {
    const leave = new AbortController();
    const stream = bench.stream(action, {}, { signal: leave.signal });
    const first = await stream.next();
    const name = first.done === true ? "" : first.value.name;
    const ended = (async () => {
      try {
        while ((await stream.next()).done !== true);
      } catch {
        // it was left
      }
    })();
    return { name, ended, stop: async () => (leave.abort(), await ended) };
  };
  const executeFor = (target: string, action: Digest) => bench.executeFor(target, action);
  const busy = async () => {
    const running = await begun(await bench.sh(salted("sleep 20")));
    await until("it runs", async () =>
      (await why(running.name)).waits.some(({ because }) => because.kind === "running"),
    );
    return running;
  };

  const submit = async (document: object): Promise<string> => {
    const at = `http://127.0.0.1:${lab.node?.edgePorts[0]}/v1/builds`;
    const headers = { authorization: `Bearer ${secrets.mill}`, "content-type": "application/json" };
    const response = await fetch(at, { method: "POST", headers, body: JSON.stringify(document) });
    equal(response.status, 201, await response.clone().text());
    return ((await response.json()) as { readonly build: string }).build;
  };

  test("it is queued behind another, as the answer says; then where it runs", async () => {
    const first = await busy();
    const second = await begun(await bench.sh(salted("true")));
    const queued = await why(second.name);
    equal(queued.waits[0]?.because.kind, "queued", queued.lines.join("\n"));
    match(
      queued.lines[0] ?? "",
      /^action {2}ready: it waits for the one worker that can run it: it is the next of its tenant/,
    );
    match((await why(first.name)).lines.join("\n"), /it runs on /);
    await first.stop();
    await second.ended;
    match(
      (await why(second.name)).lines.join("\n"),
      /succeeded\n {2}run because no result of this action was in the cache/,
    );
  });

  test("no worker fits: the closest one is named, with what it lacks", async () => {
    const platform = { properties: [{ name: "Pool", value: "giants" }] };
    const lost = await begun(await bench.sh(salted("true"), {}, {}, { platform }));
    const { lines, waits } = await why(lost.name);
    deepEqual(waits[0]?.because, { kind: "no-executor", nearest: lab.node?.name, missing: ["pool=giants"] });
    match(lines[0] ?? "", /no worker can run it; the nearest, .*, does not offer pool=giants/);
    await lost.stop();
  });

  test("an action by its digest: every run of it, and why each was necessary", async () => {
    const action = await bench.sh(salted("exit 4"));
    await bench.execute(action);
    await bench.execute(action);
    const failing = await why(text(action));
    equal(failing.runs.length, 2);
    match(failing.lines.join("\n"), /had run it before; its command ended with 4, and such results are not cached/);
    const fine = await bench.sh(salted("true"));
    await bench.execute(fine);
    await bench.execute(fine, { skipCacheLookup: true });
    const renewed = await why(text(fine));
    deepEqual(
      renewed.runs.map(({ because }) => because?.kind),
      ["skip-cache-lookup", "never-stored"],
    );
    equal(renewed.cached?.revoked, false);
    match(renewed.lines.join("\n"), /did not want a result from the cache/);
    const never = await bench.sh(salted("true"), {}, {}, { doNotCache: true });
    await bench.execute(never);
    match((await why(text(never))).lines.join("\n"), /not to be cached \(do_not_cache\)/);
  });

  test("a revoked result is why it ran again", async () => {
    const action = await bench.sh(salted("true"));
    await bench.execute(action);
    const rule = new URLSearchParams({ space: "ac/sha256", name: text(action) }).toString();
    const at = `http://127.0.0.1:${lab.node?.edgePorts[0]}/v1/build-cache/rules?${rule}`;
    const revoked = await fetch(at, { method: "POST", headers: { authorization: `Bearer ${secrets.mill}` } });
    equal(revoked.status, 200, await revoked.text());
    await bench.execute(action);
    const { runs, lines } = await why(text(action));
    equal(runs[0]?.because?.kind, "revoked", lines.join("\n"));
  });

  test("the differences from the last action of its target are listed, for executed actions, too", async () => {
    const line = salted("cat in > out");
    await executeFor("//mill:flour", await bench.sh(line, { outputPaths: ["out"] }, { in: "wheat" }));
    const next = await bench.sh(line, { outputPaths: ["out"] }, { in: "rye" });
    const { name } = await executeFor("//mill:flour", next);
    const { lines, miss } = await why(name);
    equal(miss?.verdict, "differs");
    match(lines.join("\n"), /differs from the nearest earlier action of Grind \/\/mill:flour.*\n {2}input in: /);
  });

  test("a silent worker is why it was started again", async () => {
    const first = await busy();
    const action = await bench.sh(salted("true"));
    const second = await begun(action);
    const client = lab.node?.client;
    const offers = [...(lab.node?.labels ?? [])];
    for (const { taskId, token } of (await client?.reserve(0, { executor: "ghost", offers, count: 1 })) ?? [])
      await client?.start({ executor: "ghost", taskId, token });
    match((await why(second.name)).lines[0] ?? "", /it runs on ghost/);
    await first.stop();
    await second.ended;
    const tried = async (): Promise<boolean> => (await why(text(action))).runs[0]?.attempts.length === 2;
    await until("history has both attempts", tried);
    const { runs, lines } = await why(text(action));
    const attempts = runs[0]?.attempts.map(({ executor, outcome }) => [executor, outcome]);
    deepEqual(attempts, [
      ["ghost", "expired"],
      [lab.node?.name, "committed"],
    ]);
    match(lines.join("\n"), /run 2 times:\n *attempt 1 on ghost was lost after .*: executor-lost: the lease ran out/);
  });

  test("an action of a build: what it waits for, and what made it run again", async () => {
    const line = salted("sleep 0.1; cat in > out");
    const build = (corn: string) => ({
      name: "bread",
      actions: {
        flour: { run: line, inputs: [{ path: "in", text: corn }], outputs: ["out"] },
        bread: {
          run: "cat flour > bread",
          inputs: [{ path: "flour", from: "flour", output: "out" }],
          outputs: ["bread"],
        },
      },
    });
    const ended = async (id: string): Promise<void> => {
      await until("it ended", async () => (await why(id)).lines[0]?.startsWith("it has ended") === true);
    };
    const first = await busy();
    const id = await submit(build("wheat"));
    const waiting = await why(id, "bread");
    match(waiting.lines.join("\n"), /it waits for flour/);
    await first.stop();
    await ended(id);
    const again = await submit(build("rye"));
    await ended(again);
    const { lines, runs } = await why(again, "bread");
    equal(runs[0]?.because?.kind, "never-stored");
    match(lines.join("\n"), /differs from the nearest earlier action of bread bread.*\n {2}input flour: /);
    const third = await submit(build("rye"));
    await ended(third);
    match((await why(third, "bread")).lines.join("\n"), /not run: its result was in the cache/);
  });

  test("every action of a wide build is explained, planned or not, and an unknown one is not found", async () => {
    const salt = randomUUID();
    const numbers = Array.from({ length: 30 }, (_, i) => i);
    const mills = numbers.map((i) => [`mill${i}`, { run: `sleep ${i === 0 ? 4 : 0} # ${salt} ${i}` }]);
    const needed = numbers.map((i) => `mill${i}`);
    const ovens = numbers.map((i) => [`oven${i}`, { run: `true # ${salt} ${i}`, after: needed }]);
    const lines = async (key: string): Promise<string> => (await why(id, key)).lines[0] ?? "";
    const first = await busy();
    // Planning has a lane beside the slot, but it is work of the tenant: who may run one thing at a time waits to plan.
    await lab.node?.client.setTenant("mill", { weight: 1, runningMax: 1, queuedMax: 0 });
    const id = await submit({ name: "wide", actions: Object.fromEntries([...mills, ...ovens]) });
    match(await lines("mill29"), /^mill29, to be planned {2}ready: its tenant runs 1 of at most 1 tasks/);
    await lab.node?.client.setTenant("mill", { weight: 1, runningMax: 0, queuedMax: 0 });
    await first.stop();
    await until("the mills are planned", async () => /^mill0 {2}.*it runs on/.test(await lines("mill0")));
    for (const key of ["mill1", "mill20", "mill29"])
      match(await lines(key), new RegExp(`^${key} {2}ready: it waits for .* of its tenant`));
    for (const key of ["oven0", "oven1", "oven29"])
      match(await lines(key), new RegExp(`^${key} {2}blocked: it waits for mill0 and 29 more`));
    equal((await ask(`?of=${id}&key=oven30`)).status, 404);
    await until("it ended", async () => (await why(id)).lines[0]?.startsWith("it has ended") === true, {
      limitMs: 60_000,
    });
    match(await lines("oven29"), /oven29, asked for .* ago: succeeded/);
  });

  test("an action that was never planned says why", async () => {
    const actions = { mill: { run: salted("exit 3") }, oven: { run: "true", after: ["mill"] } };
    const id = await submit({ name: "broken", actions });
    await until("it ended", async () => (await why(id)).lines[0]?.startsWith("it has ended") === true);
    match((await why(id, "oven")).lines[0] ?? "", /^oven {2}skipped/);
    equal((await ask(`?of=${id}&key=shop`)).status, 404);
  });

  test("an operation whose result came from the cache can be queried by its name", async () => {
    const action = await bench.sh(salted("true"));
    const { name: ran } = await bench.execute(action);
    const { name } = await bench.execute(action);
    match(name, /operations\/cached-/);
    const { of, runs, lines } = await why(name);
    deepEqual([of, runs.map(({ job }) => job)], [name, [ran.slice(ran.lastIndexOf("/") + 1)]]);
    match(lines.join("\n"), /now its result is in the cache/);
  });

  test("how a command ended, and its output, is shown to callers that may see the operation", async () => {
    const { name } = await bench.execute(
      await bench.sh(salted("echo flour; printf '\\033[2Jno water\\n' >&2; exit 3")),
    );
    const { lines, runs } = await why(name);
    const ending = runs[0]?.ending;
    equal(ending?.exitCode, 3);
    equal(ending.worker, lab.node?.name);
    deepEqual([ending.stdout?.head, ending.stderr?.head], ["flour\n", "\u001b[2Jno water\n"]);
    ok(ending.sandbox !== "" && (ending.ranMs ?? -1) >= 0);
    const text = lines.join("\n");
    match(text, /exit code 3, after .*, on .*, sandbox: /);
    match(text, /stderr, .* \(all of it: millrace cache get [0-9a-f]{64}\/13\):\n {4}no water\n/);
    match(text, /what the worker noted: millrace cache get /);
    equal((await ask(`?of=${name}`, secrets.bakery)).status, 404);
    const jobId = name.slice(name.lastIndexOf("/") + 1);
    const view = (await lab.node?.client.job(jobId))?.view;
    ok(view);
    match(showJob(jobId, view, Date.now()).at(-1) ?? "", /exit code 3; what it printed: millrace why j0-/);
    const id = await submit({ name: "broken", actions: { mill: { run: salted("echo no corn >&2; exit 4") } } });
    await until("it ended", async () => (await why(id)).lines[0]?.startsWith("it has ended") === true);
    const { ending: step } = (await why(id, "mill")).runs[0] ?? {};
    deepEqual([step?.exitCode, step?.stderr?.head], [4, "no corn\n"]);
  });

  test("other tenants get nothing, and invalid requests are refused", async () => {
    const { name } = await bench.execute(await bench.sh(salted("true")));
    equal((await ask(`?of=${name}`, secrets.bakery)).status, 404);
    equal((await ask("?of=nonsense")).status, 400);
    equal((await ask("")).status, 400);
    equal((await ask(`?of=${name}`, "wrong")).status, 401);
    ok((await why(`${"0".repeat(64)}/1`)).lines.at(-1)?.startsWith("no run of it"));
  });
});
