/** A plain TCP balancer: each connection goes to the next backend that accepts it, byte for byte. */
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import type { Scissors } from "./scissors.ts";

const connectMs = 1_000;

export type BalancerOptions = {
  /** What it listens on; left out: any port of this machine. */
  readonly listen?: string;
  /** Called for each connection: where it is cut. Left out: nowhere. */
  readonly scissors?: () => Scissors;
};

export class Balancer implements AsyncDisposable {
  readonly #backends: readonly string[];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #carried = new Map<string, number>();
  readonly #scissors: (() => Scissors) | undefined;
  #turn = 0;
  #cuts = 0;

  private constructor(backends: readonly string[], { scissors }: BalancerOptions) {
    this.#backends = backends;
    this.#scissors = scissors;
    this.#server = createServer({ allowHalfOpen: true }, (socket) => void this.#carry(socket));
  }

  /** `backends` and what it listens on are host:port. */
  static async open(backends: readonly string[], options: BalancerOptions = {}): Promise<Balancer> {
    const balancer = new Balancer(backends, options);
    const [host, port] = (options.listen ?? "127.0.0.1:0").split(":");
    await new Promise<void>((bound) => balancer.#server.listen(Number(port), host, bound));
    return balancer;
  }

  get address(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `${address}:${port}`;
  }

  /** How many connections each backend has now. */
  get carried(): ReadonlyMap<string, number> {
    return this.#carried;
  }

  /** How many connections were cut. */
  get cuts(): number {
    return this.#cuts;
  }

  async #carry(client: Socket): Promise<void> {
    this.#hold(client);
    for (let tries = 0; tries < this.#backends.length; tries += 1) {
      const backend = this.#backends[(this.#turn += 1) % this.#backends.length] ?? "";
      const server = await this.#reach(backend);
      if (!server) continue;
      if (client.destroyed) return void server.destroy();
      this.#hold(server);
      this.#carried.set(backend, (this.#carried.get(backend) ?? 0) + 1);
      server.once("close", () => this.#carried.set(backend, (this.#carried.get(backend) ?? 1) - 1));
      client.pipe(server).once("close", () => client.destroySoon());
      if (this.#scissors) this.#carryUntilCut(server, client, this.#scissors());
      else server.pipe(client);
      client.once("close", () => server.destroy());
      return;
    }
    client.destroy();
  }

  /** Bytes before the cut arrive; then the connection is dead. */
  #carryUntilCut(server: Socket, client: Socket, scissors: Scissors): void {
    server.on("data", (bytes: Buffer) => {
      const at = scissors.cutAt(bytes);
      if (at === undefined) {
        if (!client.write(bytes)) server.pause();
        return;
      }
      this.#cuts += 1;
      client.end(bytes.subarray(0, at));
      server.removeAllListeners("data").destroy();
    });
    client.on("drain", () => server.resume());
    server.once("end", () => client.end());
  }

  #reach(backend: string): Promise<Socket | undefined> {
    const [host = "", port] = backend.split(":");
    const socket = connect({ host, port: Number(port), noDelay: true, allowHalfOpen: true, timeout: connectMs });
    return new Promise((resolve) => {
      const fail = (): void => resolve(void socket.destroy());
      socket.once("error", fail).once("timeout", fail);
      socket.once("connect", () => {
        socket.setTimeout(0);
        socket.off("error", fail);
        resolve(socket);
      });
    });
  }

  #hold(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => {}).once("close", () => this.#sockets.delete(socket));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((closed) => this.#server.close(closed));
  }
}
