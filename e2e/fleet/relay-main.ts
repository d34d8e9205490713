// In a node's network: forwards connections from outside to the node, which listens only on its own machine.
import { Balancer } from "./balancer.ts";

const [listen = "", backend = ""] = process.argv.slice(2);
await Balancer.open([backend], { listen });
