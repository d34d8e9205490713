/** The node that a command asks over HTTP: the flags, then the environment, then the data folder. */
import { dataFolder, defaultDataPath, publishedEdge } from "#app/data-folder.ts";
import { Fault, type FaultCode } from "#base/fault.ts";
import { jsonFlag, type Flags } from "./command.ts";

export const serverFlags = {
  ...jsonFlag,
  server: { type: "string", value: "URL", about: "the node to ask, such as http://host:8980 ($MILLRACE_SERVER)" },
  token: { type: "string", value: "TOKEN", about: "who asks; better said by $MILLRACE_TOKEN, which others cannot see" },
  data: { type: "string", value: "FOLDER", about: "the data folder of the node to ask ($MILLRACE_DATA, ~/.millrace)" },
} as const satisfies Flags;

export type ServerFlagValues = { readonly server?: string; readonly token?: string; readonly data?: string };

export type Server = { readonly base: string; readonly headers: Readonly<Record<string, string>> };

export function serverOf({ server, token, data }: ServerFlagValues, env: NodeJS.ProcessEnv): Server {
  const given = server ?? (data === undefined ? env["MILLRACE_SERVER"] || undefined : undefined);
  const folder = dataFolder(data ?? defaultDataPath(env));
  const published = given === undefined ? publishedEdge(folder) : undefined;
  if (given === undefined && published === undefined)
    throw new Fault("unavailable", "find node", { data: folder.path, why: "no node is running there" });
  if (given !== undefined && !/^https?:\/\/[^/\s]/.test(given))
    throw new Fault("invalid", "find node", { server: given, why: "write its address, such as http://127.0.0.1:8980" });
  const said = token ?? (env["MILLRACE_TOKEN"] || undefined);
  return {
    base: (given ?? `http://${published}`).replace(/\/+$/, ""),
    headers: said === undefined ? {} : { authorization: `Bearer ${said}` },
  };
}

/** An answer, or a Fault that says what the node said. */
export async function askServer(
  { base, headers }: Server,
  path: string,
  doing: string,
  init: RequestInit = {},
): Promise<Response> {
  const all = { ...(init.headers as Readonly<Record<string, string>> | undefined), ...headers };
  const response = await fetch(`${base}${path}`, { ...init, headers: all }).catch((error: unknown) => {
    throw new Fault("unavailable", doing, { server: base, why: "no node answers there" }, error);
  });
  if (response.ok) return response;
  const { title = "it does not say why" } = (await response.json().catch(() => ({}))) as { title?: string };
  throw new Fault(codes[response.status] ?? "internal", doing, { status: response.status, why: title });
}

/** Whether nobody listens there any more: not one that is too slow, unknown by name, or says that it cannot answer. */
export function hasEnded(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause)
    if (endedCodes.has(String((at as NodeJS.ErrnoException).code))) return true;
  return false;
}

const endedCodes: ReadonlySet<string> = new Set(["ECONNREFUSED", "ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);

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
