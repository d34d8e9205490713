/** The pages of releases in a real browser: the list, one release live with its waves, services by region. */
import { deepEqual, equal, match } from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Browser, browserSkip, type Page } from "#testing/browser.ts";
import { bundleConsole } from "#testing/console.ts";
import { until } from "#testing/until.ts";
import { DeployFleet } from "./fleet.ts";

const skip = browserSkip || (process.platform === "linux" ? false : "needs linux: agents find processes in /proc");
const service = `
service: web
build: { run: "mkdir out && cp server.mjs out/", output: out }
run:
  exec: [${JSON.stringify(process.execPath)}, server.mjs]
  probe: { exec: "true", within: 60s, every: 50ms }
targets: { labels: [role=web], regions: [eu] }
waves: [ { share: "50%" }, { share: "100%", approve: 1 } ]
`;
const limits = { limitMs: 120_000, everyMs: 200 };
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

describe("the pages of releases", { skip, timeout: 240_000 }, () => {
  let fleet: DeployFleet;
  let browser: Browser;
  let page: Page;
  before(async () => {
    bundleConsole();
    fleet = await DeployFleet.open(["m1", "m2"]);
    browser = await Browser.open();
    page = await browser.newPage();
    await until("both machines are attached", () => fleet.machines().length === 2, limits);
    await page.goto(`http://${fleet.node.address}/console/releases`);
    await page.until("it asks for a token", `document.querySelector("#token") !== null`);
    await page.evaluate(`document.querySelector("#token").select()`);
    await page.send("Input.insertText", { text: tokenOf(fleet.node.headers) });
    await click("Log in");
    await page.until("it is signed in", shows("owner, operator"));
  });
  after(async () => {
    await browser[Symbol.asyncDispose]();
    await fleet[Symbol.asyncDispose]();
  });

  const shows = (text: string): string => `document.body.innerText.includes(${JSON.stringify(text)})`;
  const click = async (text: string): Promise<void> => {
    const named = `[...document.querySelectorAll("a, button")].find((one) => one.innerText.startsWith("${text}"))`;
    await page.until(`${text} can be clicked`, `${named} !== undefined`);
    await page.evaluate(`${named}.click()`);
  };

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

  test("show a release live, let a person approve its wave, and its services by region", async () => {
    await page.until("the list is empty", shows("No releases yet"));
    fleet.commit(service, "setInterval(() => {}, 1000);\n");
    const [job = ""] = fleet.millrace("deploy", "release", join(fleet.repository, "service.yaml"));
    await page.until("the release is there", shows(job));
    await isSound("the list of releases");
    await click(job);
    await page.until("one machine runs it", shows("1 healthy"));
    await page.until("it waits for a person", shows("it takes 1 approvals, none yet"));
    await isSound("a release that waits");
    await click("Approve wave 2");
    await page.until("both machines run it", shows("2 healthy"));
    await page.until("it has ended", `document.querySelector("h1").innerText.includes("succeeded")`);
    await isSound("a release that has ended");
    const metrics = await (await fetch(`http://${fleet.node.address}/metrics`, { headers: fleet.node.headers })).text();
    match(metrics, /^millrace_deploy_releases_total\{service="web",outcome="succeeded"\} 1$/m);
    match(metrics, /^millrace_deploy_phase_seconds_count\{phase="wave"\} 2$/m);
    match(metrics, /^millrace_deploy_releases_running 0$/m);
    await page.goto(`http://${fleet.node.address}/console/releases/services/web`);
    await page.until("the region", shows("2 of 2"));
    await isSound("a service by region");
  });
});

const tokenOf = (headers: ConstructorParameters<typeof Headers>[0]): string =>
  new Headers(headers).get("authorization")?.replace(/^Bearer /, "") ?? "";
