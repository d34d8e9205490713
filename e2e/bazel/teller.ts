/** Tells whoever asks the next of its words: for tests that are to come out differently each time that they run. */
import { createServer, type AddressInfo, type Server } from "node:net";

export class Teller implements AsyncDisposable {
  readonly #server: Server;
  readonly #words: readonly string[];
  #told = 0;

  private constructor(words: readonly string[]) {
    this.#words = words;
    this.#server = createServer((socket) => {
      socket.on("error", () => {}); // it may leave before it was told
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

  /** How many asked. */
  get told(): number {
    return this.#told;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise((closed) => this.#server.close(closed));
  }
}
