/** A real browser for tests: Chromium, driven over its debugging protocol. */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clearAway } from "./clear-away.ts";
import { endChild } from "./end-child.ts";
import { until } from "./until.ts";

const program = ["chromium", "chromium-browser", "google-chrome"].find(
  (name) => spawnSync(name, ["--version"]).error === undefined,
);

/** The reason why tests with a browser are skipped. */
export const browserSkip: string | false = program === undefined && "needs chromium: it is not installed";

const flags = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--no-proxy-server",
  "--remote-debugging-port=0",
];

type Message = {
  readonly id?: number;
  readonly method?: string;
  readonly sessionId?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
};

type Pending = { readonly resolve: (result: Record<string, unknown>) => void; readonly reject: (error: Error) => void };

export class Browser {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #socket: WebSocket;
  readonly #pending = new Map<number, Pending>();
  readonly #pages = new Map<string, Page>();
  #lastId = 0;

  private constructor(child: ChildProcess, folder: string, socket: WebSocket) {
    this.#child = child;
    this.#folder = folder;
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#take(JSON.parse(String(data)) as Message));
    socket.addEventListener("close", () => {
      for (const { reject } of this.#pending.values()) reject(new Error("the browser has gone"));
    });
  }

  /** `hosts` lead to this machine, whatever their names. */
  static async open(hosts: readonly string[] = []): Promise<Browser> {
    const folder = await mkdtemp(join(tmpdir(), "millrace-browser-"));
    const rules = hosts.map((host) => `MAP ${host} 127.0.0.1`).join(",");
    const args = [...flags, `--user-data-dir=${folder}`, ...(rules === "" ? [] : [`--host-resolver-rules=${rules}`])];
    const child = spawn(program ?? "", [...args, "about:blank"], { stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    child.stderr.on("data", (part: Buffer) => (said = (said + part.toString()).slice(-100_000)));
    const address = (): string | undefined => /DevTools listening on (ws:\S+)/.exec(said)?.[1];
    await until("the browser listens", () => address() !== undefined, { limitMs: 60_000 });
    const socket = new WebSocket(address() ?? "");
    await once(socket, "open");
    return new Browser(child, folder, socket);
  }

  async newPage(): Promise<Page> {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, String(sessionId), String(targetId));
    this.#pages.set(String(sessionId), page);
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await page.send(`${domain}.enable`);
    return page;
  }

  send(method: string, params: object = {}, sessionId?: string): Promise<Record<string, unknown>> {
    const id = (this.#lastId += 1);
    const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>();
    this.#pending.set(id, { resolve, reject });
    this.#socket.send(JSON.stringify({ id, method, params, ...(sessionId !== undefined && { sessionId }) }));
    return promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    await endChild(this.#child, "SIGKILL");
    clearAway(this.#folder);
  }

  #take({ id, method, sessionId, params = {}, result, error }: Message): void {
    if (id === undefined) {
      if (method !== undefined && sessionId !== undefined) this.#pages.get(sessionId)?.heard(method, params);
      return;
    }
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error) pending?.reject(new Error(error.message));
    else pending?.resolve(result ?? {});
  }
}

export class Page {
  readonly #browser: Browser;
  readonly #session: string;
  readonly #target: string;
  /** What went wrong in the page: exceptions, errors in its console, violations of its policy. */
  readonly problems: string[] = [];
  #loads = 0;

  constructor(browser: Browser, session: string, target: string) {
    this.#browser = browser;
    this.#session = session;
    this.#target = target;
  }

  send(method: string, params: object = {}): Promise<Record<string, unknown>> {
    return this.#browser.send(method, params, this.#session);
  }

  heard(method: string, params: Record<string, unknown>): void {
    if (method === "Page.loadEventFired") this.#loads += 1;
    if (method === "Runtime.exceptionThrown") this.problems.push(`exception: ${JSON.stringify(params)}`);
    if (method === "Log.entryAdded") {
      const { level, text, url } = params["entry"] as Record<string, string>;
      if (level === "error") this.problems.push(`${text} ${url ?? ""}`);
    }
    if (method === "Runtime.consoleAPICalled" && params["type"] === "error")
      this.problems.push(`console: ${JSON.stringify(params["args"])}`);
  }

  async goto(url: string): Promise<void> {
    const before = this.#loads;
    const { errorText } = await this.send("Page.navigate", { url });
    if (errorText !== undefined) throw new Error(`${url}: ${JSON.stringify(errorText)}`);
    await until(`${url} has loaded`, () => this.#loads > before, { limitMs: 60_000 });
  }

  /** The value of an expression in the page; a promise is waited for. */
  async evaluate<T>(expression: string): Promise<T> {
    const wanted = { expression, awaitPromise: true, returnByValue: true, userGesture: true };
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", wanted);
    if (exceptionDetails !== undefined) throw new Error(`in the page: ${JSON.stringify(exceptionDetails)}`);
    return (result as { readonly value: T }).value;
  }

  async until(what: string, expression: string, limitMs = 60_000): Promise<void> {
    const isSo = (): Promise<boolean> => this.evaluate<boolean>(`Boolean(${expression})`);
    await until(what, isSo, { limitMs, everyMs: 50 }).catch(async (error: unknown) => {
      const shown = await this.evaluate<string>("document.body.innerText");
      throw new Error(`the page shows: ${shown.slice(0, 2_000)}; ${this.problems.join("; ")}`, { cause: error });
    });
  }

  async look({ width = 1280, dark = false }: { readonly width?: number; readonly dark?: boolean }): Promise<void> {
    const metrics = { width, height: 900, deviceScaleFactor: 1, mobile: width < 600 };
    await this.send("Emulation.setDeviceMetricsOverride", metrics);
    const features = [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }];
    await this.send("Emulation.setEmulatedMedia", { features });
  }

  async close(): Promise<void> {
    await this.#browser.send("Target.closeTarget", { targetId: this.#target });
  }
}
