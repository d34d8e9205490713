/** The node that a command asks over HTTP: the flags, then the environment, then the data folder. */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { dataFolder, defaultDataPath, publishedEdge, type DataFolder } from "#app/node/data-folder.ts";
import { ownerTokenFor } from "#app/node/owner-token.ts";
import { Fault, isFault, type FaultCode } from "#base/fault.ts";
import type { NodeHttp, ServerFlagValues } from "#door/command.ts";
import type { Trust } from "./server-tls.ts";

export type Server = {
  readonly base: string;
  readonly headers: Readonly<Record<string, string>>;
  /** With TLS: whose certificates are good. Left out: whose this machine says. */
  readonly trust?: Trust | undefined;
};

export function serverOf({ server, ca, token, data }: ServerFlagValues, env: NodeJS.ProcessEnv): Server {
  const given = server ?? (data === undefined ? env["MILLRACE_SERVER"] || undefined : undefined);
  const said = token ?? (env["MILLRACE_TOKEN"] || undefined);
  if (given === undefined) return serverIn(dataFolder(data ?? defaultDataPath(env)), said);
  const headers = bearing(said);
  if (!/^https?:\/\/[^/\s]/.test(given))
    throw new Fault("invalid", doing, { server: given, why: "write its address, such as http://127.0.0.1:8980" });
  const file = ca ?? (env["MILLRACE_CA"] || undefined);
  const trust = file === undefined ? undefined : ({ kind: "signed", ca: readCa(file) } as const);
  return { base: given.replace(/\/+$/, ""), headers, trust };
}

const doing = "find node";

const bearing = (token: string | undefined): Server["headers"] =>
  token === undefined ? {} : { authorization: `Bearer ${token}` };

/**
 * What it tells in its folder is looked up for every request: its certificate may be renewed meanwhile. With TLS the
 * folder's own token goes only to who shows that certificate.
 */
function serverIn(folder: DataFolder, said: string | undefined): Server {
  const told = publishedEdge(folder);
  if (!told) throw new Fault("unavailable", doing, { data: folder.path, why: "no node is running there" });
  const token = said ?? ownerTokenFor(folder, told.url);
  const trust = { kind: "same", certificate: () => publishedEdge(folder)?.certificate } as const;
  return { base: told.url, trust, headers: bearing(token) };
}

function readCa(file: string): string {
  try {
    const pem = readFileSync(file, "utf8");
    void new X509Certificate(pem);
    return pem;
  } catch (error) {
    throw new Fault("invalid", doing, { ca: file, why: "it is no file with certificates as PEM" }, error);
  }
}

/** Whatever it answers. */
export async function reachServer(
  { base, headers, trust }: Server,
  path: string,
  init: RequestInit = {},
): Promise<Response> {
  const all = { ...init, headers: { ...(init.headers as Readonly<Record<string, string>> | undefined), ...headers } };
  if (!trust || !base.startsWith("https:")) return await fetch(`${base}${path}`, all);
  const { fetchTrusting } = await import("./server-tls.ts");
  return await fetchTrusting(`${base}${path}`, all, trust);
}

/** An answer, or a Fault that says what the node said. */
export async function askServer(
  server: Server,
  path: string,
  doing: string,
  init: RequestInit = {},
): Promise<Response> {
  const response = await reachServer(server, path, init).catch((error: unknown) => {
    throw unreached(server, doing, error);
  });
  if (response.ok) return response;
  const { title = "it does not say why" } = (await response.json().catch(() => ({}))) as { title?: string };
  const isUnknown = (response.status === 401 || response.status === 403) && !("authorization" in server.headers);
  const wants = isUnknown ? "$MILLRACE_TOKEN, or --data FOLDER for the token of a node of yours" : undefined;
  const code = codes[response.status] ?? (response.status < 500 ? "invalid" : "internal");
  throw new Fault(code, doing, { status: response.status, why: title, wants });
}

/** The same as a door's commands are given it. */
export function httpOf(values: ServerFlagValues, env: NodeJS.ProcessEnv): NodeHttp {
  const server = serverOf(values, env);
  return {
    reach: (path, init) => reachServer(server, path, init),
    ask: (path, asking, init) => askServer(server, path, asking, init),
  };
}

/** Whether no process listens there any more; a slow node, an unknown name or a refusal does not count. */
export function hasEnded(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause)
    if (endedCodes.has(String((at as NodeJS.ErrnoException).code))) return true;
  return false;
}

const endedCodes: ReadonlySet<string> = new Set(["ECONNREFUSED", "ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);

const mutual = {
  why: "it asks for a client certificate, which this program cannot show",
  wants: "curl --cert, or edge.tls.clientCertificate: optional and a token",
};

/** A node that answers and cannot be trusted is not the same as no node. */
function unreached({ base }: Server, doing: string, error: unknown): Fault {
  if (isFault(error)) return new Fault(error.code, doing, { server: base, ...error.facts }, error);
  const { code = "" } = ((error as Error).cause ?? error) as { readonly code?: string };
  if (code.endsWith("ALERT_CERTIFICATE_REQUIRED"))
    return new Fault("invalid", doing, { server: base, ...mutual }, error);
  if (/CERT|SIGNATURE/.test(code)) {
    const why = `its certificate is not trusted: ${code}`;
    return new Fault("invalid", doing, { server: base, why, wants: "--ca FILE, with who signed it" }, error);
  }
  return new Fault("unavailable", doing, { server: base, why: "no node answers there" }, error);
}

const codes: Readonly<Record<number, FaultCode>> = {
  400: "invalid",
  401: "invalid",
  403: "invalid",
  404: "not-found",
  405: "invalid",
  409: "stale",
  412: "invalid",
  413: "exhausted",
  429: "exhausted",
  503: "unavailable",
  507: "exhausted",
};
