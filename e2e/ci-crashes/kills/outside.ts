/** What steps do outside, counted by a server that they call: it knows nothing of Millrace. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** Between an effect and its answer, so that a kill can come between doing and saying. */
const answerMs = 150;

export class Outside {
  readonly #server = createServer((request, response) => {
    const [, kind = "", name = ""] = (request.url ?? "").split("/");
    const status = this.#take(kind, name, request.headers["idempotency-key"]);
    setTimeout(() => response.writeHead(status).end("ok\n"), kind === "was" ? 0 : answerMs);
  });
  /** Steps in the order in which they began. */
  readonly begun: number[] = [];
  /** How often each effect without a key was done, and with which keys the others. */
  readonly counts = new Map<string, number>();
  readonly keys = new Map<string, Set<string>>();
  readonly posts: string[] = [];
  url = "";

  static async open(): Promise<Outside> {
    const outside = new Outside();
    await new Promise<void>((resolve) => outside.#server.listen(0, "127.0.0.1", resolve));
    outside.url = `http://127.0.0.1:${(outside.#server.address() as AddressInfo).port}`;
    return outside;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  wasDone(name: string): boolean {
    return (this.counts.get(name) ?? 0) > 0;
  }

  #take(kind: string, name: string, key: string | string[] | undefined): number {
    switch (kind) {
      case "step":
        this.begun.push(Number(name));
        return 200;
      case "post":
        this.posts.push(name);
        return 200;
      case "was":
        return this.wasDone(name) ? 200 : 404;
      case "keyed":
        this.keys.set(name, (this.keys.get(name) ?? new Set()).add(String(key)));
        return 200;
      case "plain":
        this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
        return 200;
      default:
        return 404;
    }
  }
}
