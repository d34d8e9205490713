/** The node whose cache a command is about, over HTTP. */
import { askServer, serverFlags, serverOf, type Server, type ServerFlagValues } from "./server.ts";

export const cacheFlags = serverFlags;
export type CacheFlagValues = ServerFlagValues;

export class CacheServer {
  readonly #server: Server;

  constructor(values: CacheFlagValues, env: NodeJS.ProcessEnv) {
    this.#server = serverOf(values, env);
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
    const asked = query.length > 0 ? `?${new URLSearchParams(query).toString()}` : "";
    const body = more.body && { body: more.body, duplex: "half" as const };
    return await askServer(this.#server, `/v1/build-cache/${path}${asked}`, "ask the cache", { method, ...body });
  }
}
