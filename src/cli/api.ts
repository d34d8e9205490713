/** The node's HTTP API, for commands: each call is typed by the endpoint that it names. */
import { isFault } from "#base/fault.ts";
import type { Endpoint, EndpointDeclaration } from "#http/endpoint.ts";
import { callEndpoint, type Answered, type Fetch, type Request } from "#http/client.ts";
import type { ServerFlagValues, World } from "#door/command.ts";
import { askServer, serverOf } from "#app/client/server.ts";

export type Api = <D extends EndpointDeclaration>(endpoint: Endpoint<D>, request: Request<D>) => Promise<Answered<D>>;

/** `doing` is what an error says first, such as "list jobs". */
export function apiOf(values: ServerFlagValues, env: NodeJS.ProcessEnv, doing: string): Api {
  const server = serverOf(values, env);
  const ask: Fetch = (path, init) => askServer(server, path, doing, init);
  return (endpoint, request) => callEndpoint(ask, endpoint, request);
}

const againMs = 300;

/**
 * Tries again while the node cannot be reached, for so long: it may just be restarting. Its address is read again each
 * time, because a node that restarted may listen elsewhere. Only for calls that may be made twice.
 */
export async function withPatience<T>(patienceMs: number, attempt: () => Promise<T>): Promise<T> {
  for (const startedMono = performance.now(); ;) {
    try {
      return await attempt();
    } catch (error) {
      if (!isFault(error, "unavailable") || performance.now() - startedMono > patienceMs) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, againMs));
  }
}

/** Runs until it ends or Ctrl-C: that ends the watching, never what is watched. */
export async function untilInterrupted<T>(
  run: (signal: AbortSignal) => Promise<T>,
  interrupted: (world: World) => T,
  world: World,
): Promise<T> {
  const abort = new AbortController();
  const stop = (): void => abort.abort(new Error("watching ended"));
  process.once("SIGINT", stop);
  try {
    return await run(abort.signal);
  } catch (error) {
    if (!abort.signal.aborted) throw error;
    world.progress("");
    return interrupted(world);
  } finally {
    process.off("SIGINT", stop);
  }
}
