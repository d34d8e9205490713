/** Which node a command talks to: the flags, then the environment, then the data folder. */
import { dataFolder, defaultDataPath, hasLivingNode, publishedAddress } from "#app/node/data-folder.ts";
import { readOwnerToken } from "#app/node/owner-token.ts";
import { connectTo } from "#app/remote.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { NodeFlagValues, RemoteClient } from "#door/command.ts";

/** How long a command waits for a node that is just restarting. */
const patienceMs = 15_000;

export async function findNode({ node, data }: NodeFlagValues, env: NodeJS.ProcessEnv): Promise<RemoteClient> {
  const given = node ?? (data === undefined ? env["MILLRACE_NODE"] || undefined : undefined);
  const folder = dataFolder(data ?? defaultDataPath(env));
  const address = given ?? publishedAddress(folder);
  if (address === undefined) throw noNode({ data: folder.path, why: "no node is running there" });
  // Where nodes share no secret, the folder's token is what its owner is known by over TCP.
  const isOfFolder = address === publishedAddress(folder) && hasLivingNode(folder);
  const secret = isOfFolder ? readOwnerToken(folder) : undefined;
  const probe = connectTo(address, { deadlineMs: 500, secret });
  try {
    await probe.work.cluster();
  } catch (error) {
    if (isFault(error, "unavailable")) throw noNode({ address, why: "no node answers there" }, error);
    throw error;
  } finally {
    await probe[Symbol.asyncDispose]();
  }
  return connectTo(address, { deadlineMs: patienceMs, secret });
}

const noNode = (facts: Record<string, string>, cause?: unknown): Fault =>
  new Fault("unavailable", "find node", facts, cause);
