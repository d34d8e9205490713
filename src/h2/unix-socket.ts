/** Listens on a Unix socket that only its owner may connect to. */
import { chmodSync, unlinkSync } from "node:fs";
import { connect, type Server } from "node:net";

/** Removes a socket file without a listener, which a crash left. Throws the system's error if it cannot listen. */
export async function listenOnUnixSocket(server: Server, path: string): Promise<void> {
  try {
    await bind(server, path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EADDRINUSE" || (await answers(path))) throw cause;
    unlinkSync(path);
    await bind(server, path);
  }
  if (process.platform !== "win32") chmodSync(path, 0o600);
}

function bind(server: Server, path: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  privately(() =>
    server.listen(path, () => {
      server.off("error", reject);
      resolve();
    }),
  );
  return promise;
}

/** `listen` makes the socket's file at once, so that from its first moment on only its owner may open it. */
function privately(listen: () => void): void {
  const before = process.umask(0o177);
  try {
    listen();
  } finally {
    process.umask(before);
  }
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once("connect", () => {
      probe.destroy();
      resolve(true);
    });
    probe.once("error", () => resolve(false));
  });
}
