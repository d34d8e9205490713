/** A transport within one process: messages are copied through JSON, so that nothing is shared by accident. */
import { orAborted } from "#base/calls/abort.ts";
import { Fault } from "#base/fault.ts";
import type { ShardService, WatchMessage } from "./protocol.ts";
import type { Address, Transport } from "./transport.ts";

export class MemoryNetwork {
  readonly #services = new Map<Address, ShardService>();

  /** A transport for the node at `address`. */
  transportAt(address: Address): Transport {
    const services = this.#services;
    const serviceAt = (to: Address): ShardService => {
      const service = services.get(to);
      if (!service) throw new Fault("unavailable", "connect", { to, why: "no node listens at this address" });
      return service;
    };
    return {
      async request(to, request, signal) {
        signal.throwIfAborted();
        const answering = serviceAt(to).request(copy(request), signal);
        return copy(await orAborted(answering, signal));
      },
      async *watch(to, request, signal) {
        signal.throwIfAborted();
        const messages = serviceAt(to).watch(copy(request), signal)[Symbol.asyncIterator]();
        try {
          for (;;) {
            const next: IteratorResult<WatchMessage> = await orAborted(messages.next(), signal);
            if (next.done) return;
            yield copy(next.value);
          }
        } finally {
          // Not awaited: a service that hangs in its next message must not block its reader.
          void messages.return?.()?.catch(() => {});
        }
      },
      async listen(service) {
        services.set(address, service);
        return { address, close: async () => void services.delete(address) };
      },
      async close() {
        services.delete(address);
      },
    };
  }
}

const copy = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
