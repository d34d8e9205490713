/** A load generator in a separate process: it gets one order at a time and answers with the outcome. */
import { fork } from "node:child_process";
import { once } from "node:events";

export class LoadProcess<Asked extends { readonly kind: string }, Did> {
  readonly #child;

  constructor(program: string, execArgv: readonly string[] = process.execArgv) {
    this.#child = fork(program, { execArgv: [...execArgv] });
  }

  async ask<D extends Did = Did>(asked: Asked): Promise<D> {
    const answer = once(this.#child, "message") as Promise<[{ did?: D; failed?: string }]>;
    this.#child.send(asked);
    const [{ did, failed }] = await answer;
    if (!did) throw new Error(`${asked.kind}: ${failed}`);
    return did;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  stop(): void {
    this.#child.kill();
  }
}

/** The other end: handles one order after the other, until the parent is gone. */
export function answering<Asked>(perform: (asked: Asked) => Promise<unknown>): void {
  process.on("disconnect", () => process.exit(0));
  process.on("message", (asked: Asked) => {
    perform(asked).then(
      (did) => process.send?.({ did }),
      (error: unknown) => process.send?.({ failed: String(error) }),
    );
  });
}
