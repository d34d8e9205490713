/** The pages of runs in a real browser: graph, live log, annotations, summary, cancel and re-run. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { mkdtemp, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { Browser, browserSkip, type Page } from "#testing/browser.ts";
import { clearAway } from "#testing/clear-away.ts";
import { bundleConsole } from "#testing/console.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const lines = 100_000;
const mill = `
on: workflow_dispatch
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - run: 'echo "### flour" >> "$GITHUB_STEP_SUMMARY"; echo "::warning file=mill.c,line=7::the stone is blunt"'
      - run: seq -f "grain %.0f" 1 ${lines}
  test: { needs: build, runs-on: ubuntu-latest, steps: [{ run: exit 4 }] }
`;
const long =
  "on: workflow_dispatch\njobs: { a: { runs-on: ubuntu-latest, steps: [{ run: echo live; exec sleep 600 }] } }\n";
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

describe("the pages of runs", { skip: browserSkip, timeout: 120_000 }, () => {
  let folder: string;
  let node: Running;
  let ci: CiNode;
  let base: string;
  let repository: TestRepository;
  let browser: Browser;
  let page: Page;

  before(async () => {
    bundleConsole();
    folder = await mkdtemp(join(tmpdir(), "millrace-ci-page-"));
    repository = new TestRepository({ ".github/workflows/mill.yml": mill, ".github/workflows/long.yml": long });
    const config = Config.parse({
      edge: { listen: ["127.0.0.1:0"] },
      cluster: { shards: 1 },
      node: { stopWithin: "100ms" },
      worker: { slots: 4 },
    });
    node = await startNode(config, dataFolder(folder), { log: () => {} });
    base = `http://127.0.0.1:${node.edgePorts[0]}`;
    ci = new CiNode(base, () => node.owner);
    await ci.register("mill/flour", repository.folder);
    browser = await Browser.open();
    page = await browser.newPage();
    await page.goto(`${base}/console/runs`);
    await page.until("it asks for a token", `document.querySelector("#token") !== null`);
    await page.evaluate(`document.querySelector("#token").select()`);
    await page.send("Input.insertText", { text: node.owner });
    await click("Log in");
    await page.until("it is signed in", shows("owner, operator"));
  });
  after(async () => {
    await browser[Symbol.asyncDispose]();
    await node.stop();
    repository[Symbol.dispose]();
    clearAway(folder);
  });

  const shows = (text: string): string => `document.body.innerText.includes(${JSON.stringify(text)})`;
  const click = (text: string): Promise<void> =>
    page.evaluate(
      `[...document.querySelectorAll("a, button")].find((one) => one.innerText.startsWith("${text}")).click()`,
    );
  const inLog = (text: string): string =>
    `document.querySelector(".lines")?.innerText.includes(${JSON.stringify(text)}) === true`;

  async function isSound(what: string): Promise<void> {
    for (const look of [
      { width: 1280, dark: false },
      { width: 390, dark: true },
    ]) {
      await page.look(look);
      await page.evaluate(`${axe}; undefined`);
      const found = await page.evaluate<readonly string[]>(
        `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations.map(
          ({ id, nodes }) => id + ": " + nodes.map(({ html, any }) =>
            html + " " + any.map((one) => one.message)).join("; ")))`,
      );
      deepEqual(found, [], what);
      equal(await page.evaluate("document.documentElement.scrollWidth > innerWidth"), false, `${what} is too wide`);
    }
    deepEqual(page.problems, [], what);
  }

  test("a run appears in the list by itself; its page has graph, steps, annotations and summary", async () => {
    await page.until("the list is empty", shows("No runs yet"));
    const run = await ci.dispatch("mill/flour", "mill");
    await page.until("the run is there", shows(run));
    equal((await ci.ended(run)).conclusion, "failure");
    await page.until("it has ended", shows("failure"));
    await isSound("the list of runs");
    await click(run);
    await page.until("the graph", `document.querySelectorAll(".graph ul").length === 2`);
    await page.until("the failed job is shown first", inLog("Process completed with exit code 4."));
    await click("build");
    await page.until("the annotation", shows("the stone is blunt"));
    await page.until("the summary", shows("### flour"));
    await isSound("a run that failed");
  });

  test(`a log of ${lines} lines: few of them are in the page, any can be reached, and a search finds its line`, async () => {
    await page.until(
      "all lines have come",
      `/^1000\\d\\d lines$/.test(document.querySelector("[role=status]").innerText)`,
    );
    const scrolled = (top: number): string => `document.querySelector(".lines").scrollTop = ${top}; undefined`;
    const begin = performance.now();
    for (let jump = 1; jump <= 50; jump += 1) {
      await page.evaluate(scrolled(jump * 20 * 1_900));
      await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => resolve(0)))");
    }
    const jumpMs = (performance.now() - begin) / 50;
    ok(jumpMs < 5_000, `a jump through the log took ${jumpMs} ms`);
    const shown = await page.evaluate<number>(`document.querySelectorAll(".lines .line").length`);
    ok(shown > 10 && shown < 200, `${shown} lines are in the page`);
    await page.evaluate(`document.querySelector(".search input").select()`);
    await page.send("Input.insertText", { text: "grain 43210" });
    await page.evaluate(`document.querySelector(".search button").click()`);
    await page.until("it is found", inLog("grain 43210"));
    equal(await page.evaluate(`document.querySelector(".lines .found").innerText.includes("grain 43210")`), true);
  });

  test("a live log, cancel, and re-run of one job", async () => {
    const run = await ci.dispatch("mill/flour", "long");
    await page.goto(`${base}/console/runs/${run}`);
    await page.until("it prints", inLog("live"));
    ok(await page.evaluate(shows("in progress")), "it runs still");
    await isSound("a run in progress");
    await click("Cancel");
    await page.until("it is cancelled", `document.querySelector("h1").innerText.includes("cancelled")`);
    await click("Re-run a");
    await page.until("the new run", `!location.pathname.endsWith("/${run}") && ${shows("attempt 2")}`);
    await page.until("it prints again", inLog("live"));
    await click("Cancel");
    await page.until("it is cancelled, too", `document.querySelector("h1").innerText.includes("cancelled")`);
    await isSound("a cancelled run");
  });
});
