/** A store whose answers a test releases one by one, counts, and makes fail. */
import { Fault } from "#base/fault.ts";
import { extend } from "#blobs/extend.ts";
import type { BlobStore } from "#blobs/store.ts";

export class HeldStore {
  readonly calls: string[] = [];
  /** How many parts may be handed out until the test releases more; unlimited unless set. */
  partsLeft = Infinity;
  partBytes = 1_000;
  fails: Fault | undefined;
  /** Changes parts before they are handed out. */
  tamper: (part: Uint8Array, at: number) => Uint8Array = (part) => part;
  #moved = Promise.withResolvers<void>();

  letGo(parts: number): void {
    this.partsLeft += parts;
    this.#moved.resolve();
    this.#moved = Promise.withResolvers();
  }

  over(inner: BlobStore): BlobStore {
    const begin = (call: string): void => {
      this.calls.push(call);
      if (this.fails) throw this.fails;
    };
    // oxlint-disable-next-line typescript/no-this-alias -- a generator has no other way to it
    const held = this;
    return extend(inner, {
      // Removed, so that every byte passes `read` here.
      file: undefined,
      adopt: undefined,
      path: undefined,
      part: undefined,
      prompt: undefined,
      async missing(digests) {
        begin("missing");
        return await inner.missing(digests);
      },
      async write(digest, source, form) {
        begin("write");
        await inner.write(digest, source, form);
      },
      async pin(digests, forMs) {
        begin("pin");
        return await inner.pin(digests, forMs);
      },
      async *read(digest, range, form) {
        begin("read");
        for await (const whole of inner.read(digest, range, form))
          for (let at = 0; at === 0 || at < whole.length; at += held.partBytes) {
            while (held.partsLeft <= 0) await held.#moved.promise;
            held.partsLeft -= 1;
            if (held.fails) throw held.fails;
            yield held.tamper(Uint8Array.from(whole.subarray(at, at + held.partBytes)), at);
          }
      },
    });
  }
}

export const gone = (): Fault => new Fault("unavailable", "call a tier", { why: "it does not answer" });
