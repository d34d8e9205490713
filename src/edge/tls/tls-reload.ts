/** Serves new connections with new files as they appear; existing connections are not affected. */
import type { Server } from "node:tls";
import type { Clock } from "#base/clock.ts";
import type { Tls } from "./tls-config.ts";
import { loadTls, type LoadedTls } from "./tls-files.ts";
import { WatchedFiles } from "./watched-files.ts";

export type TlsReloadPorts = {
  readonly clock: Clock;
  readonly onReload: (loaded: LoadedTls) => void;
  /** New files that cannot be used: the old ones stay in use, and the new ones are read again later. */
  readonly onTrouble: (error: unknown) => void;
};

export class TlsReload implements Disposable {
  readonly #watched: WatchedFiles;
  readonly #servers = new Set<Pick<Server, "setSecureContext">>();
  #loaded: LoadedTls;

  private constructor(loaded: LoadedTls, watched: WatchedFiles) {
    this.#loaded = loaded;
    this.#watched = watched;
  }

  /** Throws a Fault if the files cannot be used at all: a node does not start with half of its TLS. */
  static async start(config: Tls, { clock, onReload, onTrouble }: TlsReloadPorts): Promise<TlsReload> {
    const watched = await WatchedFiles.start(
      [config.certificate, config.key, ...(config.clientCa === undefined ? [] : [config.clientCa])],
      {
        clock,
        everyMs: config.reload,
        onTrouble,
        onChange: async () => {
          const loaded = await loadTls(config);
          tls.#use(loaded);
          onReload(loaded);
        },
      },
    );
    const tls: TlsReload = await loadTls(config).then(
      (loaded) => new TlsReload(loaded, watched),
      (error: unknown) => {
        watched[Symbol.dispose]();
        throw error;
      },
    );
    return tls;
  }

  get current(): LoadedTls {
    return this.#loaded;
  }

  /** Gives the server, made with `current`, every later context; the returned function stops that. */
  keepUpToDate(server: Pick<Server, "setSecureContext">): () => void {
    server.setSecureContext(this.#loaded.context);
    this.#servers.add(server);
    return () => void this.#servers.delete(server);
  }

  [Symbol.dispose](): void {
    this.#watched[Symbol.dispose]();
    this.#servers.clear();
  }

  #use(loaded: LoadedTls): void {
    this.#loaded = loaded;
    for (const server of this.#servers) server.setSecureContext(loaded.context);
  }
}
