/** A line to a node that a test can cut and mend. */
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

export class CutLine implements AsyncDisposable {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  isCut = false;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async to(address: string): Promise<CutLine> {
    const [host = "", port = ""] = address.split(":");
    const server = createServer();
    const line = new CutLine(server);
    server.on("connection", (socket) => {
      if (line.isCut) return void socket.destroy();
      const onward = connect({ host, port: Number(port) });
      for (const each of [socket, onward]) {
        line.#sockets.add(each);
        each.on("error", () => undefined);
        each.on("close", () => {
          line.#sockets.delete(each);
          socket.destroy();
          onward.destroy();
        });
      }
      socket.pipe(onward).pipe(socket);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return line;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  cut(): void {
    this.isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.isCut = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
