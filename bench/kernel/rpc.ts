/** The two ways to ask a shard from another process, in turns: framed JSON over TCP, and the work protocol over gRPC. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { LoadProcess } from "#bench/load-process.ts";
import { median, processCpuUs } from "#bench/measure.ts";
import type { Figure } from "#bench/report.ts";
import type { Suite } from "#bench/suite.ts";
import { rpcShapes, type RpcDone, type RpcWork } from "./rpc-load.ts";

type Rate = { readonly perSecond: number; readonly serverUs: number; readonly clientUs: number };

const ways = ["tcp", "grpc"] as const;

export const rpc: Suite = {
  name: "rpc",
  about: "requests to a shard from another process: frames over TCP beside the work protocol over gRPC",
  notMeasured: [
    "what the shard does: it answers at once",
    "TLS",
    "several connections",
    "the node's policy for callers",
  ],
  async run(report, { smoke }) {
    const { count, rounds } = smoke ? { count: 1_000, rounds: 1 } : { count: 20_000, rounds: 7 };
    const child = fork(join(import.meta.dirname, "rpc-server.ts"));
    const load = new LoadProcess<RpcWork, RpcDone>(join(import.meta.dirname, "rpc-load.ts"));
    try {
      const [addresses] = (await once(child, "message")) as [Record<RpcWork["over"], string>];
      const measure = async (over: RpcWork["over"], shape: RpcWork["shape"], atOnce: number): Promise<Rate> => {
        const calls = shape === "100 commits" ? count / 20 : count;
        const used = (): readonly number[] => [child.pid ?? 0, load.pid].map(processCpuUs);
        const [serverBefore = 0, clientBefore = 0] = used();
        const work = { kind: "work", over, address: addresses[over], shape, count: calls, atOnce } as const;
        const { seconds } = await load.ask(work);
        const [serverAfter = 0, clientAfter = 0] = used();
        return {
          perSecond: calls / seconds,
          serverUs: (serverAfter - serverBefore) / calls,
          clientUs: (clientAfter - clientBefore) / calls,
        };
      };
      for (const over of ways) for (const shape of rpcShapes) await measure(over, shape, 64);
      const rows: Figure[][] = [];
      for (const shape of rpcShapes)
        for (const atOnce of [64, 1]) {
          const rates: Record<RpcWork["over"], Rate[]> = { tcp: [], grpc: [] };
          for (let round = 0; round < rounds; round += 1)
            for (const over of ways) rates[over].push(await measure(over, shape, atOnce));
          const middle = (over: RpcWork["over"], of: keyof Rate): number => median(rates[over].map((rate) => rate[of]));
          for (const over of ways)
            rows.push([
              `${shape}, ${atOnce} at once`,
              over,
              middle(over, "perSecond"),
              middle(over, "serverUs"),
              middle(over, "clientUs"),
              `${(middle(over, "perSecond") / middle("tcp", "perSecond")).toFixed(2)}x`,
            ]);
          const key = `${shape.replace(" ", "_")}_${atOnce}`;
          const cpu = (over: RpcWork["over"]): number => middle(over, "serverUs") + middle(over, "clientUs");
          report.figure(`grpc_to_tcp_rate_${key}`, middle("grpc", "perSecond") / middle("tcp", "perSecond"));
          report.figure(`grpc_to_tcp_cpu_${key}`, cpu("grpc") / cpu("tcp"));
        }
      report.table("Calls/s, and CPU us a call", ["", "over", "calls/s", "server", "client", "to tcp"], rows);
    } finally {
      load.stop();
      child.kill();
    }
  },
};
