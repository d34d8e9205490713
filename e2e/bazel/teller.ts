/** Answers each connection with the next of its texts: for tests that must end differently each time they run. */
import { createServer, type AddressInfo, type Server } from "node:net";

export class Teller implements AsyncDisposable {
  readonly #server: Server;
  readonly #words: readonly string[];
  #told = 0;

  private constructor(words: readonly string[]) {
    this.#words = words;
    this.#server = createServer((socket) => {
      socket.on("error", () => {}); // the client may leave before it is answered
      socket.end(`${this.#words[this.#told] ?? "nothing"}\n`);
      this.#told += 1;
    });
  }

  static async open(words: readonly string[]): Promise<Teller> {
    const teller = new Teller(words);
    await new Promise<void>((listening) => teller.#server.listen(0, "127.0.0.1", listening));
    return teller;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** How many clients asked. */
  get told(): number {
    return this.#told;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise((closed) => this.#server.close(closed));
  }
}
