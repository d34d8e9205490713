/** A connection to the launcher; starts the launcher if there is none. */
import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import { FrameReader, frameOf } from "./frame.ts";
import type { LauncherArguments } from "./launcher/launcher.ts";
import { launcherVersion, type Request, type LauncherMessage } from "./protocol.ts";
import { preloadFlags } from "./preload-flags.ts";

export type Welcome = Extract<LauncherMessage, { ev: "welcome" }>;

export type Link = {
  readonly welcome: Welcome;
  /** From now on; earlier messages are delivered now. */
  listen(hear: (news: LauncherMessage) => void): void;
  /** Sends all at once, in this order. False if there is no connection. */
  send(...requests: readonly Request[]): boolean;
  leave(): Promise<void>;
  readonly closed: Promise<void>;
};

export type LinkOptions = {
  /** Lanes have their folders below it; if lanes have separate users, those must be able to traverse to it. */
  readonly home: string;
  /** The launcher's socket. */
  readonly socket: string;
  readonly lanes: number;
  /** How many of the lanes are for tools that stay; not lent if runs cannot be frozen. */
  readonly toolLanes?: number | undefined;
  /** Additional lanes, numbered after the others, that always run as our own user. */
  readonly ownLanes?: number | undefined;
  /** Lane n runs as this user plus n. Needs root. */
  readonly uidBase?: number | undefined;
  /** Lanes run as root, and each order drops to its user: for runs that are not sealed. */
  readonly drops?: boolean | undefined;
  /** With less free space than this, the run that wrote most is ended. */
  readonly freeBytesMin?: number | undefined;
  /** For all runs together. */
  readonly memoryBytesMax?: number | undefined;
  readonly clock: Clock;
};

const startMsMax = 20_000;
/** The limit of a Unix socket's path. */
const socketBytesMax = 107;

export async function connectLauncher(options: LinkOptions): Promise<Link> {
  const { socket, clock } = options;
  if (Buffer.byteLength(socket) > socketBytesMax)
    throw new Fault("invalid", "connect to launcher", { socket, bytesMax: socketBytesMax });
  const untilMono = clock.monotonicMs() + startMsMax;
  let life: { exited?: string } | undefined;
  for (let waitMs = 5; ; waitMs = Math.min(100, waitMs * 2)) {
    const link = await greet(options);
    if (link) return link;
    if (clock.monotonicMs() > untilMono || life?.exited !== undefined)
      throw new Fault("unavailable", "start launcher", { exited: life?.exited, log: logPath(options.home) });
    life ??= startLauncher(options);
    await clock.sleep(waitMs);
  }
}

const logPath = (home: string): string => join(home, "launcher.log");

function startLauncher({ home, socket }: LinkOptions): { exited?: string } {
  const life: { exited?: string } = {};
  mkdirSync(home, { recursive: true, mode: 0o711 });
  mkdirSync(dirname(socket), { recursive: true, mode: 0o700 });
  const log = openSync(logPath(home), "a", 0o600);
  try {
    const path = fileURLToPath(new URL("./launcher/launcher.ts", import.meta.url));
    const args: LauncherArguments = [home, socket, String(process.pid)];
    const flags = ["--max-old-space-size=128", "--max-semi-space-size=4", "--v8-pool-size=1", "--no-warnings"];
    const child = spawn(process.execPath, [...flags, ...preloadFlags(), path, ...args], {
      cwd: "/",
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", UV_THREADPOOL_SIZE: "1" },
      detached: true,
      stdio: ["ignore", log, log],
    });
    child.once("error", (error) => (life.exited = error.message));
    child.once("exit", (code, signal) => (life.exited = String(signal ?? code)));
    child.unref();
    return life;
  } finally {
    closeSync(log);
  }
}

/** Undefined if no launcher listens there. One of another version is asked to quit. */
async function greet(options: LinkOptions): Promise<Link | undefined> {
  const link = new SocketLink(options.socket);
  if (!(await link.connected)) return undefined;
  const { lanes, uidBase, drops = false, freeBytesMin = 0, memoryBytesMax = 0 } = options;
  const users = uidBase === undefined ? {} : { uidBase, drops };
  const counts = { lanes, toolLanes: options.toolLanes ?? 0, ownLanes: options.ownLanes ?? 0 };
  link.send({ op: "hello", version: launcherVersion, ...counts, freeBytesMin, memoryBytesMax, ...users });
  const welcome = await link.first();
  if (!welcome) return undefined;
  if (welcome.version !== launcherVersion) {
    link.send({ op: "quit" });
    await link.closed;
    return undefined;
  }
  return link;
}

/** Fits most messages, several at once. */
const chunkBytes = 16 * 1024;

class SocketLink implements Link {
  readonly #socket: Socket;
  /** False if no launcher listens there. */
  readonly connected: Promise<boolean>;
  readonly closed: Promise<void>;
  readonly #unheard: LauncherMessage[] = [];
  #hear: ((news: LauncherMessage) => void) | undefined;
  #welcome: Welcome | undefined;
  readonly #first = Promise.withResolvers<Welcome | undefined>();

  constructor(path: string) {
    const reader = new FrameReader();
    const read = (bytes: number, chunk: Uint8Array): boolean => {
      this.#read(reader, Buffer.from(chunk.buffer, chunk.byteOffset, bytes));
      return true;
    };
    // Reads into one buffer and bypasses the stream: messages are short, and a stream's overhead is that of a file.
    const socket = connect({ path, onread: { buffer: Buffer.allocUnsafe(chunkBytes), callback: read } });
    this.#socket = socket;
    this.connected = new Promise((resolve) => {
      socket.once("error", () => resolve(false));
      socket.once("connect", () => resolve(true));
    });
    this.closed = new Promise((resolve) => socket.once("close", () => resolve()));
    socket.on("error", () => {});
    socket.once("close", () => this.#first.resolve(undefined));
  }

  get welcome(): Welcome {
    if (!this.#welcome) throw new Fault("internal", "talk to the launcher", { why: "it has not sent its welcome" });
    return this.#welcome;
  }

  first(): Promise<Welcome | undefined> {
    return this.#first.promise;
  }

  listen(hear: (news: LauncherMessage) => void): void {
    this.#hear = hear;
    for (const news of this.#unheard.splice(0)) hear(news);
  }

  send(...requests: readonly Request[]): boolean {
    if (this.#socket.destroyed) return false;
    const [first, ...more] = requests.map(frameOf);
    if (first) this.#socket.write(more.length === 0 ? first : Buffer.concat([first, ...more]));
    return true;
  }

  async leave(): Promise<void> {
    this.#socket.end();
    this.#socket.destroy();
    await this.closed;
  }

  #read(reader: FrameReader, chunk: Buffer): void {
    try {
      for (const message of reader.push(chunk)) this.#take(message as LauncherMessage);
    } catch (error) {
      if (!isFault(error)) throw error;
      this.#socket.destroy();
    }
  }

  #take(news: LauncherMessage): void {
    if (news.ev === "welcome") {
      this.#welcome ??= news;
      this.#first.resolve(news);
    } else if (this.#hear) this.#hear(news);
    else this.#unheard.push(news);
  }
}
