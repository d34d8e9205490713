// In a node's network: carries what comes from outside to the node, which listens on its own machine only.
import { Balancer } from "./balancer.ts";

const [listen = "", backend = ""] = process.argv.slice(2);
await Balancer.open([backend], { listen });
