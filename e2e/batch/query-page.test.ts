/** The pages of queries in a real browser: the list, and one query live with its stages; and what /metrics says. */
import { deepEqual, equal, match } from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { col, count, dataset, sum } from "#doors/batch/api/batch.ts";
import { Browser, browserSkip, type Page } from "#testing/browser.ts";
import { clearAway } from "#testing/clear-away.ts";
import { bundleConsole } from "#testing/console.ts";
import { apiAsks, newFolder, writeEvents } from "./lab.ts";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

describe("the pages of queries", { skip: browserSkip, timeout: 120_000 }, () => {
  let folder = "";
  let node: Running;
  let browser: Browser;
  let page: Page;
  before(async () => {
    bundleConsole();
    folder = await newFolder();
    await writeEvents(folder);
    const data = dataFolder(join(folder, "data"));
    const config = Config.parse({ cluster: { shards: 1 }, edge: { listen: ["127.0.0.1:0"] }, worker: { slots: 2 } });
    node = await startNode(config, data, { log: () => {} });
    apiAsks(data.path);
    browser = await Browser.open();
    page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${node.edgePorts[0]}/console/queries`);
    await page.until("it asks for a token", `document.querySelector("#token") !== null`);
    await page.evaluate(`document.querySelector("#token").select()`);
    await page.send("Input.insertText", { text: node.owner ?? "" });
    await click("Log in");
    await page.until("it is signed in", shows("owner, operator"));
  });
  after(async () => {
    await browser[Symbol.asyncDispose]();
    await node.stop();
    clearAway(folder);
  });

  const shows = (text: string): string => `document.body.innerText.includes(${JSON.stringify(text)})`;
  const click = (text: string): Promise<void> =>
    page.evaluate(
      `[...document.querySelectorAll("a, button")].find((one) => one.innerText.startsWith("${text}")).click()`,
    );

  async function isSound(what: string): Promise<void> {
    for (const look of [
      { width: 1280, dark: false },
      { width: 390, dark: true },
    ]) {
      await page.look(look);
      await page.evaluate(`${axe}; undefined`);
      const found = await page.evaluate<readonly string[]>(
        `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations.map(
          ({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join("; ")))`,
      );
      deepEqual(found, [], what);
      equal(await page.evaluate("document.documentElement.scrollWidth > innerWidth"), false, `${what} is too wide`);
    }
    deepEqual(page.problems, [], what);
  }

  test("show a query live with its stages, and one that failed", async () => {
    await page.until("the list is empty", shows("No queries yet"));
    const events = dataset.parquet<{ user: number; country: string; ms: number }>(`${folder}/events-*.parquet`);
    const query = events
      .groupBy("country")
      .agg({ n: count(), ms: sum("ms") })
      .sort("country");
    const job = await query.submit({ splitBytes: 20_000, broadcastBytes: 100, folder });
    await page.until("the query is there", shows(job.id));
    await isSound("the list of queries");
    await click(job.id);
    await page.until("it has ended", `document.querySelector("h1")?.innerText.includes("succeeded")`);
    await page.until("its stages", shows("groups"));
    equal(await page.evaluate(`document.querySelectorAll("progress").length > 1`), true);
    await isSound("a query that has ended");
    const wrong = await dataset.parquet(`${folder}/none-*.parquet`).where(col("a").gt(1)).submit();
    await page.goto(`http://127.0.0.1:${node.edgePorts[0]}/console/queries/${wrong.id}`);
    await page.until("why it failed", shows("no file has such a name"));
    await isSound("a query that failed");
    const headers = { authorization: `Bearer ${node.owner}` };
    const metrics = await (await fetch(`http://127.0.0.1:${node.edgePorts[0]}/metrics`, { headers })).text();
    match(metrics, /^millrace_batch_queries_total\{outcome="succeeded"\} 1$/m);
    match(metrics, /^millrace_batch_queries_total\{outcome="failed"\} 1$/m);
    match(metrics, /^millrace_batch_tasks_total\{outcome="computed"\} [1-9]/m);
    match(metrics, /^millrace_batch_rows_written_total [1-9]/m);
  });
});
