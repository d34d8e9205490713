import { exerciseTransport } from "#shard/testing/exercise-transport.ts";
import { MemoryNetwork } from "./memory.ts";

exerciseTransport("the transport within a process", async () => {
  const network = new MemoryNetwork();
  return { server: network.transportAt("a"), client: network.transportAt("b"), nowhere: "c" };
});
