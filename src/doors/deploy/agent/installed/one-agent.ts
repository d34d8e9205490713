/**
 * OA1 There is at most one agent for a folder: the name of a socket that the system takes back when its process ends,
 *     however it ends.
 */
import { createHash } from "node:crypto";
import { createServer } from "node:net";
import { Fault } from "#base/fault.ts";

export async function beTheOnlyAgent(root: string): Promise<Disposable> {
  const name = createHash("sha256").update(root).digest("hex").slice(0, 32);
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) =>
      reject(
        cause.code === "EADDRINUSE"
          ? new Fault("stale", "run agent", { root, why: "another agent looks after this folder" }, cause)
          : cause,
      ),
    );
    server.listen({ path: `\0millrace-agent-${name}` }, resolve);
  });
  server.unref();
  return { [Symbol.dispose]: () => void server.close() };
}
