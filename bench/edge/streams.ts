/** Ten thousand streams at once for a minute: nothing fails, and memory stays where it is. */
import { EdgeLoad, startServer, withBenchFile } from "./contestants.ts";
import { median } from "#bench/measure.ts";
import type { Suite } from "#bench/suite.ts";

export const streams: Suite = {
  name: "streams",
  about: "10,000 calls at once over 100 connections for a minute, small ones, reads and writes: errors and memory",
  notMeasured: [
    "clients on another machine, TLS, deadlines; what is read comes from the page cache, what is written goes nowhere",
    "how many more there could be: the client is one process, and busier than the server",
  ],
  async run(report, { smoke }) {
    const [connections, each, forMs] = smoke ? [10, 20, 1_500] : [100, 100, 60_000];
    const load = new EdgeLoad();
    await withBenchFile(2, async () => {
      const serving = await startServer("edge-hand");
      try {
        const samples: number[] = [];
        const sampling = setInterval(() => samples.push(serving.memoryMb), smoke ? 100 : 1_000);
        const before = serving.cpuUs;
        const did = await load.streams({ port: serving.port, connections, streams: each, forMs });
        clearInterval(sampling);
        const cpuUs = (serving.cpuUs - before) / did.calls;
        // In the first half the server warms up: its young generation alone grows by 128 MB.
        const quarter = Math.floor(samples.length / 4);
        const early = median(samples.slice(2 * quarter, 3 * quarter));
        const late = median(samples.slice(-quarter));
        const grown = late - early;
        report.table(
          `${connections} connections x ${each} streams for ${forMs / 1_000} s: small calls, reads and writes`,
          [
            "at once",
            "calls",
            "failed",
            "calls/s",
            "MiB/s",
            "p50 ms",
            "p99 ms",
            "CPU us a call",
            "MB in the third quarter",
            "MB most",
            "MB more in the fourth",
          ],
          [
            [
              did.openMost,
              did.calls,
              did.failed,
              did.calls / did.seconds,
              did.mib / did.seconds,
              did.p50Ms,
              did.p99Ms,
              cpuUs,
              early,
              Math.max(...samples),
              grown,
            ],
          ],
        );
        if (did.failed > 0) report.say(`The first that failed: ${did.firstFailure}`);
        report.figure("calls_per_s", did.calls / did.seconds);
        report.figure("failed", did.failed);
        report.figure("grown_mb", grown);
        report.target({ what: "calls at once", atLeast: connections * each, got: did.openMost });
        report.target({ what: "calls that failed", atMost: 0, got: did.failed });
        report.target({
          what: "% more memory in the last quarter than in the one before",
          atMost: 10,
          got: (100 * grown) / early,
        });
      } finally {
        serving.stop();
        load.stop();
      }
    });
  },
};
