import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import { Fault, isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { fetchText } from "./fetch-text.ts";
import { testIssuer } from "#edge/testing/jwt.ts";
import { RemoteKeys } from "./key-ring.ts";

const issuer = await testIssuer();
const good = JSON.stringify(issuer.jwks);

function rig(answers: (() => Promise<string>)[]) {
  const clock = new ManualClock();
  const troubles: Fault[] = [];
  let fetches = 0;
  const keys = new RemoteKeys(
    { url: "https://x.example/keys", refreshMs: 60_000, cooldownMs: 10_000 },
    {
      clock,
      fetchText: () => (answers[fetches++] ?? (() => Promise.resolve(good)))(),
      onTrouble: (fault) => troubles.push(fault),
    },
  );
  return { clock, keys, troubles, fetches: () => fetches };
}
const failing = () => Promise.reject(new Fault("unavailable", "fetch an issuer's keys"));

describe("keys from an issuer", () => {
  test("are fetched on first use, by one request for all waiting callers", async () => {
    const { keys, fetches } = rig([]);
    const [one, other] = await Promise.all([keys.current(), keys.current()]);
    ok(one === other);
    equal(fetches(), 1);
  });

  test("are fetched at most once per cooldown, however many tokens name unknown keys", async () => {
    const { keys, clock, fetches } = rig([]);
    await keys.current();
    for (let token = 0; token < 100; token += 1) equal(await keys.newer(), undefined);
    equal(fetches(), 1);
    await clock.advance(10_000);
    ok(await keys.newer());
    for (let token = 0; token < 100; token += 1) await keys.newer();
    equal(fetches(), 2);
  });

  test("are used until newer ones are there", async () => {
    const { keys, clock, troubles, fetches } = rig([() => Promise.resolve(good), failing, () => Promise.resolve("{}")]);
    const first = await keys.current();
    await clock.advance(60_000);
    ok((await keys.current()) === first);
    await clock.advance(10_000);
    ok((await keys.current()) === first);
    await clock.advance(10_000);
    ok((await keys.current()) === first, "old keys while the newer ones are on their way");
    await clock.advance(1);
    ok((await keys.current()) !== first);
    deepEqual(
      troubles.map(({ code }) => code),
      ["unavailable", "invalid"],
    );
    equal(fetches(), 4);
  });

  test("that could never be fetched are unavailable, and fetched again after the cooldown", async () => {
    const { keys, clock, fetches } = rig([failing]);
    for (let call = 0; call < 3; call += 1) await rejects(keys.current(), (error) => isFault(error, "unavailable"));
    equal(fetches(), 1);
    await clock.advance(10_000);
    ok(await keys.current());
  });
});

describe("fetching them", () => {
  async function fetching(answer: RequestListener, run: (url: string) => Promise<void>): Promise<void> {
    const server = createServer(answer);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      await run(`http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`);
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }
  const limits = { timeoutMs: 1_000, sizeBytesMax: 1_000 };

  test("returns the text", () =>
    fetching(
      (_, response) => response.end("text"),
      async (url) => equal(await fetchText(url, limits, new ManualClock()), "text"),
    ));

  test("stops at the size limit, without a length in the answer", () =>
    fetching(
      (_, response) => {
        response.write("x".repeat(600));
        response.write("x".repeat(600));
      },
      (url) => rejects(fetchText(url, limits, new ManualClock()), (error) => isFault(error, "exhausted")),
    ));

  test("stops at the time limit", async () => {
    const clock = new ManualClock();
    await fetching(
      () => void clock.advance(1_000),
      (url) =>
        rejects(
          fetchText(url, limits, clock),
          (error) => isFault(error, "unavailable") && error.facts["timeoutMs"] === 1_000,
        ),
    );
    equal(clock.pending, 0);
  });

  test("follows no redirect, and accepts no other status", async () => {
    const redirect: RequestListener = ({ url }, response) =>
      url === "/keys" ? response.writeHead(302, { location: "/elsewhere" }).end() : response.end(good);
    const failure: RequestListener = (_, response) => response.writeHead(500).end("{}");
    for (const answer of [redirect, failure])
      await fetching(answer, (url) =>
        rejects(fetchText(url, limits, new ManualClock()), (e) => isFault(e, "unavailable")),
      );
  });
});
