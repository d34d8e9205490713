/** podman or docker, by its command line: the same words work for both, but for looking at health. */
import { spawn } from "node:child_process";
import { basename } from "node:path";
import { ContainerFault } from "#doors/ci/run/containers.ts";

export type EngineHow = {
  /** The program and options that go before every word, such as podman --root /var/lib/jobs. */
  readonly command: readonly string[];
  /** What every container gets. */
  readonly runOptions: readonly string[];
};

export type Said = { readonly code: number; readonly out: string; readonly err: string };

const saidMax = 256 * 1024;
const callMs = 10 * 60_000;

/** What the engine's own client reads: a job's variable of that name must not reach it. */
const read = new RegExp(
  "^(PATH|HOME|USER|LANG|TMPDIR|TZ|SSH_.*|LC_.*|LD_.*|XDG_.*|CONTAINER.*|DOCKER_.*|BUILDAH_.*|PODMAN_.*|" +
    "GO.*|.*_PROXY|_.*|STORAGE_.*|REGISTRY_.*)$",
  "i",
);

export class Engine {
  readonly how: EngineHow;
  readonly kind: "podman" | "docker";
  readonly env: Readonly<Record<string, string>>;

  constructor(how: EngineHow, env: Readonly<Record<string, string | undefined>>) {
    this.how = how;
    this.kind = how.command.some((word) => basename(word) === "podman") ? "podman" : "docker";
    const own = Object.entries(env).filter(([name, value]) => value !== undefined && read.test(name));
    this.env = Object.fromEntries(own) as Record<string, string>;
  }

  words(...args: readonly string[]): readonly [string, ...string[]] {
    const [program = "podman", ...before] = this.how.command;
    return [program, ...before, ...args];
  }

  /** Never throws for what the engine says: the caller looks at the code. */
  async try(
    args: readonly string[],
    more: {
      readonly input?: string;
      readonly env?: Readonly<Record<string, string>>;
      readonly signal?: AbortSignal | undefined;
      readonly onLine?: (line: string) => void;
    } = {},
  ): Promise<Said> {
    const [program, ...rest] = this.words(...args);
    const child = spawn(program, rest, {
      env: { ...more.env, ...this.env },
      stdio: ["pipe", "pipe", "pipe"],
      timeout: callMs,
      killSignal: "SIGKILL",
      ...(more.signal && { signal: more.signal }),
    });
    let [out, err] = ["", ""];
    child.stdout.on("data", (part: Buffer) => (out = (out + part.toString("utf8")).slice(-saidMax)));
    child.stderr.on("data", (part: Buffer) => (err = (err + part.toString("utf8")).slice(-saidMax)));
    child.stdin.on("error", () => {}); // it may end without reading
    child.stdin.end(more.input ?? "");
    const { promise, resolve } = Promise.withResolvers<Said>();
    child.once("error", (error) => resolve({ code: -1, out, err: `${program}: ${error.message}` }));
    child.once("close", (code) => resolve({ code: code ?? -1, out, err }));
    return await promise;
  }

  async call(what: string, args: readonly string[], more: Parameters<Engine["try"]>[1] = {}): Promise<string> {
    const { code, out, err } = await this.try(args, more);
    if (more.signal?.aborted) throw new ContainerFault(`${what}: stopped`);
    if (code !== 0) throw new ContainerFault(`${what} failed: ${lastLines(err || out)}`);
    return out;
  }
}

/** Of a client that also says how it is: lines about systemd and syslog are no reason. */
function lastLines(text: string): string {
  const lines = text.split("\n").filter((line) => line.trim() !== "" && !/systemd|syslog/.test(line));
  return lines.slice(-5).join("; ").slice(0, 2_000) || "it did not say why";
}

/** Values go by the client's environment, where no list of processes shows them, but for names that it reads itself. */
export function envWords(env: Iterable<readonly [string, string]>): {
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
} {
  const words: string[] = [];
  const passed: Record<string, string> = {};
  for (const [name, value] of env) {
    if (!/^[^-=\0][^=\0]*$/.test(name) || value.includes("\0")) continue;
    if (read.test(name)) words.push("-e", `${name}=${value}`);
    else {
      words.push("-e", name);
      passed[name] = value;
    }
  }
  return { words, env: passed };
}
