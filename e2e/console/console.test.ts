/** The console in a real browser: live without polling, readable for everybody, within its own content policy. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { mkdtemp, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { orderFromCommand } from "#app/job-order.ts";
import { Browser, browserSkip, type Page } from "#testing/browser.ts";
import { clearAway } from "#testing/clear-away.ts";
import { bundleConsole } from "#testing/console.ts";

const looks = [
  { name: "light", width: 1280, dark: false },
  { name: "dark", width: 1280, dark: true },
  { name: "a phone", width: 390, dark: false },
  { name: "a dark phone", width: 390, dark: true },
] as const;

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

describe("the console", { skip: browserSkip, timeout: 180_000 }, () => {
  let folder: string;
  let node: Running;
  let base: string;
  let browser: Browser;
  let page: Page;

  before(async () => {
    bundleConsole();
    folder = await mkdtemp(join(tmpdir(), "millrace-console-"));
    const config = Config.parse({
      edge: { listen: ["127.0.0.1:0"] },
      cluster: { shards: 2 },
      node: { stopWithin: "100ms" },
    });
    node = await startNode(config, dataFolder(folder), { log: () => {} });
    base = `http://127.0.0.1:${node.edgePorts[0]}`;
    browser = await Browser.open();
    page = await browser.newPage();
  });
  after(async () => {
    await browser[Symbol.asyncDispose]();
    await node.stop();
    clearAway(folder);
  });

  const submit = async (...command: readonly string[]): Promise<string> =>
    (await node.client.submit(orderFromCommand(command, { tenant: "default" }))).jobId;
  const shows = (text: string): string => `document.body.innerText.includes(${JSON.stringify(text)})`;
  const click = (text: string): Promise<void> =>
    page.evaluate(`[...document.querySelectorAll("a, button")].find((one) => one.innerText === "${text}").click()`);

  async function enter(token: string): Promise<void> {
    await page.evaluate(`document.querySelector("#token").select()`);
    await page.send("Input.insertText", { text: token });
    await page.until("it is entered", `document.querySelector("#token").value === "${token}"`);
    await click("Log in");
  }

  /** Nothing went wrong in the page, and axe finds nothing either, however it is looked at. */
  async function isSound(what: string): Promise<void> {
    for (const { name, ...look } of looks) {
      await page.look(look);
      await page.evaluate(`${axe}; undefined`);
      const found = await page.evaluate<readonly string[]>(
        `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations.map(
          ({ id, nodes }) => id + ": " + nodes.map(({ html, any }) =>
            html + " " + any.map((one) => one.message)).join("; ")))`,
      );
      deepEqual(found, [], `${what}, ${name}`);
      const isTooWide = await page.evaluate<boolean>("document.documentElement.scrollWidth > innerWidth");
      equal(isTooWide, false, `${what}, ${name}: the page does not scroll sideways`);
    }
    deepEqual(page.problems, [], what);
  }

  test("asks for a token, and says what is wrong with one", async () => {
    await page.goto(`${base}/`);
    await page.until("it asks", shows("Or give a token"));
    await isSound("the login page");
    await enter("wrong-token-wrong-token-wrong-token");
    await page.until("it refuses", shows("not known here"));
    page.problems.length = 0; // the browser's console lists the 401
    await enter(node.owner);
    await page.until("it is signed in", shows("owner, operator"));
    equal(await page.evaluate("document.cookie"), "", "scripts cannot read the session");
  });

  test("lists jobs, and shows new ones without being asked", async () => {
    await page.until("it is empty", shows("No jobs yet"));
    const job = await submit("echo", "hello");
    await page.until("the job is there", `${shows(job)} && ${shows("succeeded")}`);
    await isSound("the list of jobs");
    await click(job);
    await page.until("the job's page", `location.pathname === "/console/jobs/${job}"`);
    await page.until("its output", `document.querySelector("pre.log")?.innerText.includes("hello")`);
    await isSound("an ended job");
  });

  test("shows what a task prints while it runs, and cancels it", async () => {
    const response = await fetch(`${base}/v1/builds`, {
      method: "POST",
      headers: { authorization: `Bearer ${node.owner}`, "content-type": "application/json" },
      body: JSON.stringify({ name: "long", actions: { grind: { run: "echo flour for all; sleep 600" } } }),
    });
    const { build } = (await response.json()) as { readonly build: string };
    await page.goto(`${base}/console/jobs/${build}`);
    await page.until("it prints", `document.querySelector("pre.log")?.innerText.includes("flour for all")`);
    ok(await page.evaluate<boolean>(shows("running")), "it runs still");
    ok(await page.evaluate<boolean>(shows("Why")), "the build door's part is there");
    await isSound("a running build");
    await click("Cancel");
    await page.until("it is cancelled", shows("cancelled"));
    await isSound("a cancelled build");
  });

  test("shows the cluster", async () => {
    await click("Cluster");
    await page.until("its nodes", `${shows(node.name)} && ${shows("live")}`);
    await isSound("the cluster");
    await page.goto(`${base}/console/nowhere`);
    await page.until("no such page", shows("There is no page at this address"));
    await isSound("no page");
  });

  test("asks nothing again and again: a page that is open makes no more requests", async () => {
    await page.goto(`${base}/console/jobs`);
    await page.until("it is live", shows("live"));
    const count = (): Promise<number> => page.evaluate(`performance.getEntriesByType("resource").length`);
    const before = await count();
    const job = await submit("true");
    await page.until("the new job came by itself", shows(job));
    equal(await count(), before);
  });

  test("a hidden tab holds no connection", async () => {
    const hide = (state: "hidden" | "visible"): Promise<void> =>
      page.evaluate(`(() => {
        Object.defineProperty(document, "hidden", { value: ${state === "hidden"}, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      })()`);
    await page.evaluate(`(() => {
      window.closings = 0;
      const { close } = EventSource.prototype;
      EventSource.prototype.close = function () { window.closings += 1; close.call(this); };
    })()`);
    await hide("hidden");
    equal(await page.evaluate("window.closings"), 1);
    const job = await submit("true");
    await hide("visible");
    await page.until("it has caught up", shows(job));
  });

  test("stays within its policy: nothing inline, nothing from elsewhere, no text that becomes code", async () => {
    const blocked = await page.evaluate<readonly string[]>(`new Promise((done) => {
      const seen = [];
      document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) => {
        seen.push(effectiveDirective);
        if (seen.length === 3) done(seen.toSorted());
      });
      const script = document.createElement("script");
      script.append("window.inlineRan = true");
      document.head.append(script);
      fetch("http://localhost:1/").catch(() => {});
      try { document.body.insertAdjacentHTML("beforeend", "<img>"); } catch {}
    })`);
    deepEqual(blocked, ["connect-src", "require-trusted-types-for", "require-trusted-types-for"]);
    equal(await page.evaluate("window.inlineRan"), undefined);
  });

  test("signs out", async () => {
    await click("Sign out");
    await page.until("it asks again", shows("Or give a token"));
    await page.goto(`${base}/console/jobs`);
    await page.until("it asks still", shows("Or give a token"));
  });
});
