/** For tests: an outside process that counts what steps did. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** Counts calls by path, and answers each as `answer` says; undefined: never. */
export async function counter(answer: (path: string, count: number) => string | undefined) {
  const counts = new Map<string, number>();
  const server = createServer(({ url: path = "" }, response) => {
    const count = (counts.get(path) ?? 0) + 1;
    counts.set(path, count);
    const text = answer(path, count);
    if (text !== undefined) response.end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { counts, url: `http://127.0.0.1:${port}`, close: () => (server.closeAllConnections(), server.close()) };
}
