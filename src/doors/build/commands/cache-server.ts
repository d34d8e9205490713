/** The node whose cache a command is about, over HTTP. */
import { serverFlags, type NodeHttp, type ServerFlagValues, type World } from "#door/command.ts";

export const cacheFlags = serverFlags;

export class CacheServer {
  readonly #http: NodeHttp;

  constructor(http: NodeHttp) {
    this.#http = http;
  }

  static async find(values: ServerFlagValues, { http }: Pick<World, "http">): Promise<CacheServer> {
    return new CacheServer(await http(values));
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
    const search = query.length > 0 ? `?${new URLSearchParams(query).toString()}` : "";
    const body = more.body && { body: more.body, duplex: "half" as const };
    return await this.#http.ask(`/v1/build-cache/${path}${search}`, "ask the cache", { method, ...body });
  }
}
