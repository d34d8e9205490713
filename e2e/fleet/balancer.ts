/** A plain TCP balancer: each connection goes to the next backend that takes it, byte for byte, and knows nothing. */
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

const connectMs = 1_000;

export class Balancer implements AsyncDisposable {
  readonly #backends: readonly string[];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #carried = new Map<string, number>();
  #turn = 0;

  private constructor(backends: readonly string[]) {
    this.#backends = backends;
    this.#server = createServer({ allowHalfOpen: true }, (socket) => void this.#carry(socket));
  }

  /** `backends` and what it listens on are host:port. */
  static async open(backends: readonly string[], listen = "127.0.0.1:0"): Promise<Balancer> {
    const balancer = new Balancer(backends);
    const [host, port] = listen.split(":");
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
      for (const [one, other] of [
        [client, server],
        [server, client],
      ] as const)
        one.pipe(other).once("close", () => one.destroy());
      return;
    }
    client.destroy();
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
