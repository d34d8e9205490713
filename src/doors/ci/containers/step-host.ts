/**
 * Steps inside a container without starting a program of the engine for each: a script waits there for orders, which
 * come and are answered through pipes in a folder that both sides see. Any image with a shell will do.
 *
 * The pipe with the orders is held open by this process alone. When this process dies, however it does, the script
 * reads its end, exits, and the container with all that runs in it is over.
 */
import { execFile } from "node:child_process";
import { chmodSync, closeSync, constants, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { ContainerFault, type Inside } from "#doors/ci/run/containers.ts";
import type { ProcessEnd, ProcessRequest } from "#doors/ci/run/process.ts";

const execute = promisify(execFile);

/** Arguments: the folder, and a Node of ours that may run in the image. */
const script = `h=$1
exec 3<"$h/in" 4>"$h/back" || exit 1
node=
for n in "$2" node; do
  if [ -n "$n" ] && "$n" --version >/dev/null 2>&1; then node=$n; break; fi
done
session=
if command -v setsid >/dev/null 2>&1; then session=setsid; fi
printf 'ready\\t%s\\t%s\\n' "$node" "$PATH" >&4
while read -r word id more <&3; do
  case $word in
    run)
      ( $session sh "$h/$id.sh" </dev/null >"$h/$id.out" 2>"$h/$id.err" 3<&- 4>&-
        printf 'end\\t%s\\t%s\\n' "$id" "$?" >&4 ) & ;;
    signal)
      if read -r pid <"$h/$id.pid"; then kill "-$more" "$pid"; fi 2>/dev/null ;;
    kill)
      if read -r pid <"$h/$id.pid"; then kill -KILL "-$pid" || kill -KILL "$pid"; fi 2>/dev/null ;;
  esac
done
`;

export const scriptName = "host.sh";
const lineLengthMax = 64 * 1024;
const drainMs = 1_000;
const stepsMax = 100_000;

type Running = { readonly ended: (end: ProcessEnd) => void };

export class StepHost implements Disposable {
  readonly #folder: string;
  readonly #orders: number;
  readonly #answers: Socket;
  readonly #running = new Map<string, Running>();
  readonly #ready = Promise.withResolvers<Omit<Inside, "run">>();
  #count = 0;
  #text = "";
  #isOver = false;

  private constructor(folder: string, orders: number, answers: Socket) {
    this.#folder = folder;
    this.#orders = orders;
    this.#answers = answers;
    this.#ready.promise.catch(() => {}); // `ready` throws it
    answers.on("data", (part) => this.#take(part.toString("utf8")));
    answers.on("error", () => this.over("its pipe broke"));
    answers.on("end", () => this.over("its container ended"));
  }

  /** Before the container is started, which runs the script with this folder. */
  static async open(folder: string): Promise<StepHost> {
    mkdirSync(folder, { recursive: true });
    await pipes(folder, "in", "back");
    chmodSync(folder, 0o777); // the image's user may be anyone
    writeFileSync(join(folder, scriptName), script);
    // For both directions: opening does not wait then, and orders can be given before they are read.
    const orders = openSync(join(folder, "in"), constants.O_RDWR | constants.O_NONBLOCK);
    return new StepHost(folder, orders, reader(join(folder, "back")));
  }

  async ready(signal: AbortSignal): Promise<Inside> {
    const stopped = Promise.withResolvers<never>();
    const stop = (): void => stopped.reject(new ContainerFault("the job was stopped while its container started"));
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    try {
      return { ...(await Promise.race([this.#ready.promise, stopped.promise])), run: (request) => this.run(request) };
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  async run(request: ProcessRequest): Promise<ProcessEnd> {
    if (request.signal.aborted) return { kind: "killed", signal: "SIGINT" };
    if (this.#isOver) return { kind: "not-started", message: "the job's container has ended" };
    this.#count += 1;
    if (this.#count > stepsMax)
      return { kind: "not-started", message: `a container runs ${stepsMax} programs at most` };
    const id = String(this.#count);
    const path = (end: string): string => join(this.#folder, `${id}.${end}`);
    await pipes(this.#folder, `${id}.out`, `${id}.err`);
    const [stdout, stderr] = [reader(path("out")), reader(path("err"))];
    stdout.on("data", request.onStdout);
    stderr.on("data", request.onStderr);
    const closed = Promise.all([over(stdout), over(stderr)]);
    writeFileSync(path("sh"), scriptOf(request, path("pid")), { mode: 0o644 });
    const { promise, resolve } = Promise.withResolvers<ProcessEnd>();
    this.#running.set(id, { ended: resolve });
    using _stopping = this.#stopWhenAborted(id, request);
    this.#order(`run ${id}`);
    try {
      const end = await promise;
      await Promise.race([closed, later(drainMs)]);
      return end;
    } finally {
      this.#running.delete(id);
      for (const socket of [stdout, stderr]) socket.destroy();
      for (const end of ["out", "err", "sh", "pid"]) rmSync(path(end), { force: true });
    }
  }

  #stopWhenAborted(id: string, { signal, grace }: ProcessRequest): Disposable {
    const timers: NodeJS.Timeout[] = [];
    const stop = (): void => {
      this.#order(`signal ${id} INT`);
      timers.push(setTimeout(() => this.#order(`signal ${id} TERM`), grace.interruptMs));
      timers.push(setTimeout(() => this.#order(`kill ${id}`), grace.interruptMs + grace.terminateMs));
    };
    signal.addEventListener("abort", stop, { once: true });
    return {
      [Symbol.dispose]: () => {
        signal.removeEventListener("abort", stop);
        for (const timer of timers) clearTimeout(timer);
        if (!this.#isOver && signal.aborted) this.#order(`kill ${id}`);
      },
    };
  }

  #order(line: string): void {
    if (this.#isOver) return;
    writeSync(this.#orders, `${line}\n`);
  }

  /** What comes from inside is not trusted: it can say no more than how the job's own steps ended. */
  #take(text: string): void {
    const lines = (this.#text + text).split("\n");
    this.#text = lines.pop() ?? "";
    if (this.#text.length > lineLengthMax) return this.over("it answered with a line that is too long");
    for (const line of lines) {
      const [word, first = "", ...rest] = line.split("\t");
      if (word === "ready") this.#ready.resolve({ node: first === "" ? undefined : first, path: rest.join("\t") });
      if (word === "end") this.#running.get(first)?.ended({ kind: "exited", code: Number(rest[0]) || 0 });
    }
  }

  over(why: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#ready.reject(new ContainerFault(`the job's container did not start: ${why}`));
    for (const { ended } of this.#running.values()) ended({ kind: "killed", signal: "the end of the job's container" });
    this.#answers.destroy();
    closeSync(this.#orders);
  }

  [Symbol.dispose](): void {
    this.over("the job is over");
  }
}

async function pipes(folder: string, ...named: readonly string[]): Promise<void> {
  await execute("mkfifo", ["-m", "666", ...named.map((name) => join(folder, name))]);
}

/** Opening it does not wait; what is written later is read, and its end is when all writers have gone. */
const reader = (path: string): Socket =>
  new Socket({ fd: openSync(path, constants.O_RDONLY | constants.O_NONBLOCK), readable: true, writable: false });

const over = async (socket: Socket): Promise<void> =>
  await new Promise((resolve) => {
    socket.once("end", resolve);
    socket.once("error", resolve);
    socket.once("close", resolve);
  });

/** Variables have names that no shell can export, such as INPUT_FETCH-DEPTH: `env` sets them. */
function scriptOf({ program, args, folder, env }: ProcessRequest, pid: string): string {
  const variables = Object.entries(env).flatMap(([name, value]) =>
    /^[^-=\0][^=\0]*$/.test(name) ? [`${name}=${value.replaceAll("\0", "")}`] : [],
  );
  return [
    `echo $$ >${quoted(pid)}`,
    `rm -f ${quoted(pid.replace(/pid$/, "sh"))}`,
    `cd ${quoted(folder)} || exit 126`,
    `exec env ${[...variables, program, ...args].map(quoted).join(" ")}`,
    "",
  ].join("\n");
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

async function later(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, ms).unref();
  await promise;
}
