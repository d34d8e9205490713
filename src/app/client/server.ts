/** The node that a command asks over HTTP: the flags, then the environment, then the data folder. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { dataFolder, defaultDataPath, publishedEdge, type DataFolder } from "#app/node/data-folder.ts";
import { ownerTokenFor } from "#app/node/owner-token.ts";
import { Fault, isFault, type FaultCode } from "#base/fault.ts";
import type { NodeHttp, ServerFlagValues } from "#door/command.ts";
import type { ClientCertificate, Trust } from "./server-fetch.ts";

export type Server = {
  readonly base: string;
  readonly headers: Readonly<Record<string, string>>;
  /** With TLS: which certificates to trust. Left out: the machine's own authorities. */
  readonly trust?: Trust | undefined;
  /** Shown to a node that asks for one. */
  readonly client?: ClientCertificate | undefined;
  /** The Unix socket that the node serves on, instead of a port. */
  readonly socket?: string | undefined;
};

/** What a task is given: the file is its own. */
function tokenInFile(path: string | undefined): string | undefined {
  if (path === undefined || path === "") return undefined;
  try {
    return readFileSync(path, "utf8").trim();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new Fault("invalid", doing, { file: path, errno: code, why: "$MILLRACE_TOKEN_FILE cannot be read" }, cause);
  }
}

export function serverOf(values: ServerFlagValues, env: NodeJS.ProcessEnv): Server {
  const { data } = values;
  const server = values.server ?? (data === undefined ? env["MILLRACE_SERVER"] || undefined : undefined);
  const token = values.token ?? (env["MILLRACE_TOKEN"] || tokenInFile(env["MILLRACE_TOKEN_FILE"]));
  const client = clientCertificate(values, env);
  if (server === undefined) return { ...serverIn(dataFolder(data ?? defaultDataPath(env)), token), client };
  const headers = bearing(token);
  if (server.startsWith(unixPrefix)) return { ...onSocket(server), headers };
  if (!/^https?:\/\/[^/\s]/.test(server))
    throw new Fault("invalid", doing, {
      server,
      why: "write its address, such as http://127.0.0.1:8980",
    });
  const file = values.ca ?? (env["MILLRACE_CA"] || undefined);
  const trust = file === undefined ? undefined : ({ kind: "signed", ca: readPem("ca", file) } as const);
  return { base: server.replace(/\/+$/, ""), headers, trust, client };
}

const unixPrefix = "unix:";

/** The host is for the request's `host` header alone. */
const onSocket = (address: string): Pick<Server, "base" | "socket"> => ({
  base: "http://localhost",
  socket: address.slice(unixPrefix.length),
});

function clientCertificate(values: ServerFlagValues, env: NodeJS.ProcessEnv): ClientCertificate | undefined {
  const cert = values.cert ?? (env["MILLRACE_CERT"] || undefined);
  const key = values["cert-key"] ?? (env["MILLRACE_CERT_KEY"] || undefined);
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined)
    throw new Fault("invalid", doing, { why: "a client certificate needs --cert and --cert-key, both as PEM files" });
  const read = { cert: readPem("cert", cert), key: readKey(key) };
  if (!new X509Certificate(read.cert).checkPrivateKey(createPrivateKey(read.key)))
    throw new Fault("invalid", doing, { cert, key, why: "the key is not the certificate's" });
  return read;
}

const doing = "find node";

const bearing = (token: string | undefined): Server["headers"] =>
  token === undefined ? {} : { authorization: `Bearer ${token}` };

/**
 * The node publishes its certificate in its folder. The file is read again for every request, because the certificate
 * may have been renewed. With TLS the folder's own token is sent only to a server that shows that certificate.
 */
function serverIn(folder: DataFolder, given: string | undefined): Server {
  const notice = publishedEdge(folder);
  if (!notice) throw new Fault("unavailable", doing, { data: folder.path, why: "no node is running there" });
  const token = given ?? ownerTokenFor(folder, notice.url);
  if (notice.url.startsWith(unixPrefix)) return { ...onSocket(notice.url), headers: bearing(token) };
  const trust = { kind: "same", certificate: () => publishedEdge(folder)?.certificate } as const;
  return { base: notice.url, trust, headers: bearing(token) };
}

function readPem(flag: "ca" | "cert", file: string): string {
  try {
    const pem = readFileSync(file, "utf8");
    void new X509Certificate(pem);
    return pem;
  } catch (error) {
    throw new Fault("invalid", doing, { [flag]: file, why: "this file has no certificates as PEM" }, error);
  }
}

function readKey(file: string): string {
  try {
    const pem = readFileSync(file, "utf8");
    void createPrivateKey(pem);
    return pem;
  } catch {
    // Without the cause: its text could quote the file.
    throw new Fault("invalid", doing, {
      "cert-key": file,
      why: "this file has no private key as PEM without a passphrase",
    });
  }
}

/** The node's answer, also one that refuses. */
export async function reachServer(
  { base, headers, trust, client, socket }: Server,
  path: string,
  init: RequestInit = {},
): Promise<Response> {
  const all = { ...init, headers: { ...(init.headers as Readonly<Record<string, string>> | undefined), ...headers } };
  const url = `${base}${path}`;
  if (socket !== undefined) return await (await import("./server-fetch.ts")).fetchOverUnixSocket(socket, url, all);
  if ((!trust && !client) || !base.startsWith("https:")) return await fetch(url, all);
  const { fetchOverTls } = await import("./server-fetch.ts");
  return await fetchOverTls(url, all, { trust: trust ?? { kind: "signed", ca: undefined }, client });
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

/** The same client, in the form that doors' commands get. */
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

const certificateMissing = {
  why: "it requires a client certificate that it trusts",
  wants: "--cert FILE and --cert-key FILE, with a certificate of an authority in the node's edge.tls.clientCa",
};

/** A node that answers and cannot be trusted is not the same as no node. */
function unreached({ base, socket }: Server, doing: string, error: unknown): Fault {
  if (socket !== undefined && !isFault(error))
    return new Fault("unavailable", doing, { server: `${unixPrefix}${socket}`, why: "no node answers there" }, error);
  if (isFault(error)) return new Fault(error.code, doing, { server: base, ...error.facts }, error);
  const { code = "" } = ((error as Error).cause ?? error) as { readonly code?: string };
  if (code.endsWith("ALERT_CERTIFICATE_REQUIRED"))
    return new Fault("invalid", doing, { server: base, ...certificateMissing }, error);
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
