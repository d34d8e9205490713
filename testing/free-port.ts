import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * A port to listen on that is available again after a restart. Not port 0: the system would choose from the range that
 * it also uses for outgoing connections, and one of those could then hold our port.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries += 1) {
    const port = 15_000 + randomInt(15_000);
    const probe = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once("error", () => resolve(false));
      probe.listen(port, "127.0.0.1", () => resolve(true));
    });
    await new Promise((resolve) => probe.close(resolve));
    if (isFree) return port;
  }
  throw new Error("no free port between 15000 and 30000");
}
