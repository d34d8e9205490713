/** A task is killed between doing something outside and saying so: nothing is repeated without a person's word. */
import { deepEqual, equal, match } from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";

const skip = process.platform === "linux" ? false : "needs linux: its node kills the processes of tasks";
const program = join(import.meta.dirname, "../../bin/millrace.js");
const patient = { limitMs: 90_000, everyMs: 100 };

describe("an effect", { skip, timeout: 240_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-effects-"));
  const counts = new Map<string, number>();
  const server = createServer(({ url = "" }, response) => {
    counts.set(url, (counts.get(url) ?? 0) + 1);
    response.end("ok\n");
  });
  let node: NodeProcess;
  let outside: string;

  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    outside = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    node = await NodeProcess.open(folder, { worker: { slots: 2 } });
  });
  after(async () => {
    await node[Symbol.asyncDispose]();
    server.closeAllConnections();
    server.close();
    clearAway(folder);
  });

  const millrace = async (...args: readonly string[]): Promise<string> =>
    (
      await promisify(execFile)(process.execPath, [program, ...args], {
        env: { ...process.env, MILLRACE_DATA: folder },
      })
    ).stdout.trim();

  /** The command tells the outside world, and then hangs in the first attempt. */
  const submit = async (path: string, ...flags: readonly string[]): Promise<string> => {
    const once = `curl -fsS ${outside}/${path}; test -e ${folder}/${path} || { touch ${folder}/${path}; sleep 600; }`;
    const words = ["node", program, "effect", "run", "pay", ...flags, "--", "sh", "-c", once].map(
      (word) => `'${word}'`,
    );
    return await millrace("job", "submit", "--", "sh", "-c", words.join(" ").replaceAll("'--'", "--"));
  };
  const phaseOf = async (job: string): Promise<string> =>
    (JSON.parse(await millrace("job", "show", job, "--json")) as { phase: string }).phase;
  const hit = (path: string): Promise<unknown> => until(`${path} was called`, () => counts.has(`/${path}`), patient);

  test("whose attempt died is not repeated: a person is asked, and the job goes on", async () => {
    const asked = await submit("asked");
    const probed = await submit("probed", "--probe", "true");
    await hit("asked");
    await hit("probed");
    await node.kill();
    await node.start();
    const undecided = async (): Promise<readonly { key: string }[]> =>
      (await millrace("effect", "list", "--undecided", "--json"))
        .split("\n")
        .flatMap((line) => (line === "" ? [] : [JSON.parse(line) as { key: string }]));
    await until("a person is asked", async () => (await undecided()).length === 1, patient);
    const [{ key } = { key: "" }] = await undecided();
    match(key, new RegExp(`^job/${asked}/`));
    equal(await millrace("effect", "decide", key, "--done"), "accepted");
    for (const job of [asked, probed])
      await until(`${job} has ended`, async () => (await phaseOf(job)) === "SUCCEEDED", patient);
    deepEqual([counts.get("/asked"), counts.get("/probed")], [1, 1]);
  });

  test("is begun and ended by tasks alone, and not by people", async () => {
    const { headers, address } = node;
    const response = await fetch(`http://${address}/v1/effects:begin`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ name: "pay" }),
    });
    equal(response.status, 403);
  });
});
