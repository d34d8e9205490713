/** The node whose cache a command is about, over HTTP: the flags, then the environment, then the data folder. */
import { dataFolder, defaultDataPath, publishedEdge } from "#app/data-folder.ts";
import { Fault, type FaultCode } from "#base/fault.ts";
import { jsonFlag, type Flags } from "./command.ts";

export const cacheFlags = {
  ...jsonFlag,
  server: { type: "string", value: "URL", about: "the node to ask, such as http://host:8980 ($MILLRACE_SERVER)" },
  token: { type: "string", value: "TOKEN", about: "who asks; better said by $MILLRACE_TOKEN, which others cannot see" },
  data: { type: "string", value: "FOLDER", about: "the data folder of the node to ask ($MILLRACE_DATA, ~/.millrace)" },
} as const satisfies Flags;

export type CacheFlagValues = { readonly server?: string; readonly token?: string; readonly data?: string };

export class CacheServer {
  readonly #base: string;
  readonly #token: string | undefined;

  constructor({ server, token, data }: CacheFlagValues, env: NodeJS.ProcessEnv) {
    const given = server ?? (data === undefined ? env["MILLRACE_SERVER"] || undefined : undefined);
    const folder = dataFolder(data ?? defaultDataPath(env));
    const published = publishedEdge(folder);
    if (given === undefined && published === undefined)
      throw new Fault("unavailable", "find node", { data: folder.path, why: "no node is running there" });
    this.#base = (given ?? `http://${published}`).replace(/\/+$/, "");
    this.#token = token ?? (env["MILLRACE_TOKEN"] || undefined);
  }

  async json<T>(method: "GET" | "POST", path: string, query: Readonly<Record<string, string | undefined>> = {}) {
    return (await (await this.ask(method, path, { query })).json()) as T;
  }

  async ask(
    method: "GET" | "POST" | "PUT" | "DELETE",
    path: string,
    more: { readonly query?: Readonly<Record<string, string | undefined>>; readonly body?: ReadableStream } = {},
  ): Promise<Response> {
    const query = Object.entries(more.query ?? {}).filter((pair): pair is [string, string] => pair[1] !== undefined);
    const url = `${this.#base}/api/cache/${path}${query.length > 0 ? `?${new URLSearchParams(query).toString()}` : ""}`;
    const headers = this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` };
    const init = { method, headers, ...(more.body && { body: more.body, duplex: "half" as const }) };
    const response = await fetch(url, init).catch((error: unknown) => {
      throw new Fault("unavailable", "ask the cache", { server: this.#base, why: "no node answers there" }, error);
    });
    if (response.ok) return response;
    const { title = "it does not say why" } = (await response.json().catch(() => ({}))) as { title?: string };
    const code = codes[response.status] ?? "internal";
    throw new Fault(code, "ask the cache", { status: response.status, why: title });
  }
}

const codes: Readonly<Record<number, FaultCode>> = {
  400: "invalid",
  401: "invalid",
  403: "invalid",
  404: "not-found",
  409: "stale",
  503: "unavailable",
  507: "exhausted",
};
