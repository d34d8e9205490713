import { exerciseTransport } from "./transport-exercise.ts";
import { MemoryNetwork } from "./transport-memory.ts";

exerciseTransport("the transport within a process", async () => {
  const network = new MemoryNetwork();
  return { server: network.transportAt("a"), client: network.transportAt("b"), nowhere: "c" };
});
