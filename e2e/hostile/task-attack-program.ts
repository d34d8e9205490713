/**
 * What a hostile action runs (task-rights.test.ts): it tries every way to the node from inside its sandbox. Prints one
 * line of JSON: the outcome of each try. A program by itself: `node attack.ts '{"port": ...}'`.
 */
import { closeSync, openSync, readFileSync, readdirSync, readSync } from "node:fs";
import { connect as connectHttp2, type IncomingHttpHeaders } from "node:http2";
import { connect } from "node:net";

export type AttackPlan = {
  readonly port: number;
  /** gRPC calls: name, path, and the request's bytes in base64. */
  readonly calls: readonly (readonly [name: string, path: string, body: string])[];
  /** HTTP requests: method and path. */
  readonly requests: readonly (readonly [method: string, path: string])[];
  readonly files: readonly string[];
  readonly sockets: readonly string[];
  /** Of the node and its launcher. */
  readonly pids: readonly number[];
};

/** A call that is held for this long was accepted. */
const heldMs = 3_000;

/** "grpc-status 7", or how the connection failed. */
function called(port: number, path: string, body: Buffer): Promise<string> {
  return new Promise((resolve) => {
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    const timer = setTimeout(() => end("held"), heldMs);
    const end = (said: string): void => {
      clearTimeout(timer);
      session.destroy();
      resolve(said);
    };
    session.on("error", (error: NodeJS.ErrnoException) => end(String(error.code)));
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
    });
    const heard = (headers: IncomingHttpHeaders): void => {
      const { "grpc-status": status, "grpc-message": message = "" } = headers;
      if (typeof status === "string") end(`grpc-status ${status} ${decodeURIComponent([message].flat().join())}`);
    };
    stream.on("response", heard);
    stream.on("trailers", heard);
    stream.on("data", () => end("answered"));
    // The connection's error comes after that of its cancelled stream, and says more.
    stream.on("error", (error: NodeJS.ErrnoException) => setImmediate(() => end(String(error.code))));
    const head = Buffer.alloc(5);
    head.writeUInt32BE(body.length, 1);
    stream.end(Buffer.concat([head, body]));
  });
}

async function requested(port: number, method: string, path: string): Promise<string> {
  try {
    const body = method === "PUT" ? { body: "poison" } : {};
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      ...body,
      signal: AbortSignal.timeout(heldMs),
    });
    return `${response.status} ${(await response.text()).slice(0, 300)}`;
  } catch (error) {
    return String(((error as Error).cause as NodeJS.ErrnoException | undefined)?.code ?? error);
  }
}

const reached = (path: string): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve("connected");
    });
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(String(error.code)));
  });

function tried(act: () => unknown): string {
  try {
    return `read ${String(act()).slice(0, 100)}`;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

function memoryOf(pid: number): string {
  const fd = openSync(`/proc/${pid}/mem`, "r");
  const [from = "0"] = readFileSync(`/proc/${pid}/maps`, "utf8").split("-");
  const bytes = Buffer.alloc(16);
  readSync(fd, bytes, 0, 16, Number.parseInt(from, 16));
  closeSync(fd);
  return bytes.toString("hex");
}

/** A process with the same number in here is another one: it is recognised by its name. */
const isItself = (pid: number): boolean => /node/.test(readFileSync(`/proc/${pid}/comm`, "utf8"));

if (import.meta.main) {
  const plan = JSON.parse(process.argv[2] ?? "{}") as AttackPlan;
  const said: Record<string, string> = {};
  for (const [name, path, body] of plan.calls) said[name] = await called(plan.port, path, Buffer.from(body, "base64"));
  for (const [method, path] of plan.requests) said[`${method} ${path}`] = await requested(plan.port, method, path);
  for (const path of plan.files) said[path] = tried(() => readFileSync(path, "utf8"));
  for (const path of plan.sockets) said[path] = await reached(path);
  for (const pid of plan.pids) {
    const isThere = tried(() => isItself(pid)) === "read true" && pid !== process.pid && pid !== process.ppid;
    said[`environ ${pid}`] = isThere ? tried(() => readFileSync(`/proc/${pid}/environ`, "latin1")) : "not there";
    said[`fd ${pid}`] = isThere ? tried(() => readdirSync(`/proc/${pid}/fd`)) : "not there";
    said[`mem ${pid}`] = isThere ? tried(() => memoryOf(pid)) : "not there";
  }
  console.log(JSON.stringify(said));
}
