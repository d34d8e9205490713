// Requests that are sent and cancelled at once cost next to nothing: the known flood by resets.
import { equal } from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { clientPreface } from "#h2/frames/frame.ts";
import { Rig, rst, settings, settingsAck } from "#h2/testing/rig.ts";
import { listenH2 } from "#h2/server.ts";
import { realClock } from "#testing/real-clock.ts";
import { serveFetch } from "./fetch-over-h2.ts";

test(
  "a request that is cancelled in the same read in which it arrived is not handled",
  { timeout: 90_000 },
  async () => {
    const handled = Promise.withResolvers<void>();
    let requests = 0;
    let handlings = 0;
    const server = await listenH2({
      host: "127.0.0.1",
      port: 0,
      clock: realClock,
      limits: { drainMs: 100 },
      onRequest(stream, headers, ended) {
        requests += 1;
        const handle = (): Response => {
          handlings += 1;
          handled.resolve();
          return new Response("here");
        };
        return serveFetch(stream, headers, ended, handle, handled.reject);
      },
    });
    const socket = connect(server.port, "127.0.0.1");
    try {
      await once(socket, "connect");
      socket.resume();
      const rig = new Rig();
      const frames = Array.from({ length: 100 }, (_, i) => [rig.headers(i * 2 + 1), rst(i * 2 + 1)]).flat();
      socket.write(Buffer.concat([clientPreface, settings(), settingsAck, ...frames, rig.headers(201)]));
      await handled.promise;
      equal(requests, 101);
      equal(handlings, 1);
    } finally {
      socket.destroy();
      await server.close();
    }
  },
);
