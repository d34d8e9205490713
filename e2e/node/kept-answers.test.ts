// Answers of requests with an Idempotency-Key, on two nodes of one cluster: two connections to one database.
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { z } from "zod";
import { principal } from "#access/principal.ts";
import { endpoint, json, jsonBody } from "#http/endpoint.ts";
import { keptAnswersDefault, keptAnswersIn } from "#http/kept-answers.ts";
import { route } from "#http/route.ts";
import { serveRoutes, type Identify } from "#http/serve.ts";
import type { Journal } from "#journal/journal.ts";
import { postgresJournal } from "#journal/postgres/postgres.ts";
import { sqliteJournal } from "#journal/sqlite/sqlite.ts";
import { clearAway } from "#testing/clear-away.ts";
import { startPostgres } from "#testing/postgres.ts";
import { realClock as clock } from "#testing/real-clock.ts";

const grind = endpoint({
  method: "POST",
  path: "/v1/grind",
  action: "work.submit",
  about: "Grinds.",
  body: jsonBody(z.object({ what: z.string() })),
  answer: json(z.object({ what: z.string(), count: z.int() }), 201),
});

const as =
  (name: string, tenant: string): Identify =>
  async () => ({
    ok: true,
    caller: {
      principal: principal({ name, tenant, roles: ["member"] }, "token"),
      address: "127.0.0.1",
      untilMs: Infinity,
      isTls: false,
    },
  });

class Mill {
  count = 0;

  /** One node: its own handler and connection, the shared database. */
  node(journal: Journal, tenantMax = keptAnswersDefault.tenantMax) {
    const handler = route(grind, async ({ body: { what } }) => {
      const count = (this.count += 1);
      if (what === "stone") throw new Error("the mill broke");
      return { body: { what, count } };
    });
    const kept = keptAnswersIn(journal.entries, { ...keptAnswersDefault, tenantMax });
    const serve = serveRoutes([handler], { clock, kept, report: () => {} });
    return async (what: string, key: string, identify = as("ann", "acme")) => {
      const response = await serve(
        new Request("http://127.0.0.1/v1/grind", {
          method: "POST",
          headers: { "idempotency-key": key, "content-type": "application/json" },
          body: JSON.stringify({ what }),
        }),
        identify,
      );
      const replayed = response?.headers.get("idempotency-replayed") ?? null;
      return { status: response?.status, replayed, body: (await response?.json()) as Record<string, unknown> };
    };
  }
}

function suite(name: string, connect: () => Promise<Journal>, options: { readonly skip?: string | false } = {}): void {
  describe(`answers kept in ${name}`, { skip: options.skip ?? false, timeout: 60_000 }, () => {
    test("any node replays the answer of another, and refuses another body under the key", async () => {
      const mill = new Mill();
      await using one = disposable(await connect());
      await using two = disposable(await connect());
      const [first, second] = [mill.node(one.journal), mill.node(two.journal)];
      deepEqual(await first("corn", "k1"), { status: 201, replayed: null, body: { what: "corn", count: 1 } });
      deepEqual(await second("corn", "k1"), { status: 201, replayed: "true", body: { what: "corn", count: 1 } });
      const refused = await second("rye", "k1");
      deepEqual([refused.status, mill.count], [422, 1]);
      match(String(refused.body["title"]), /another request/);
      equal((await second("corn", "k1", as("ann", "globex"))).body["count"], 2, "another tenant has keys of its own");
      equal((await second("corn", "k1", as("ben", "acme"))).body["count"], 3, "another principal, too");
    });

    test("of requests that arrive at once at two nodes, one has the effect", async () => {
      const mill = new Mill();
      await using one = disposable(await connect());
      await using two = disposable(await connect());
      const nodes = [mill.node(one.journal), mill.node(two.journal)];
      const all = await Promise.all(Array.from({ length: 8 }, async (_, i) => nodes[i % 2]?.("corn", "at-once")));
      equal(mill.count, 1);
      for (const answer of all) ok(answer?.status === 201 || answer?.status === 409, String(answer?.status));
    });

    test("a failure frees the key, and answers outlive the process that gave them", async () => {
      const mill = new Mill();
      await using one = disposable(await connect());
      const first = mill.node(one.journal);
      equal((await first("stone", "s1")).status, 500);
      equal((await first("stone", "s1")).status, 500);
      equal(mill.count, 2);
      await first("corn", "s2");
      await one.journal.close();
      await using again = disposable(await connect());
      equal((await mill.node(again.journal)("corn", "s2")).replayed, "true");
    });

    test("a tenant's oldest answers make way, and others' stay", async () => {
      const mill = new Mill();
      await using one = disposable(await connect());
      const first = mill.node(one.journal, 3);
      await first("corn", "theirs", as("eve", "globex"));
      for (const key of ["b1", "b2", "b3", "b4"]) await first("corn", key, as("ann", "bounded"));
      equal((await first("corn", "b4", as("ann", "bounded"))).replayed, "true");
      equal((await first("corn", "theirs", as("eve", "globex"))).replayed, "true");
      equal((await first("corn", "b1", as("ann", "bounded"))).replayed, null);
    });
  });
}

const disposable = (journal: Journal) => ({ journal, [Symbol.asyncDispose]: () => journal.close() });

const folder = await mkdtemp(join(tmpdir(), "millrace-answers-"));
after(() => clearAway(folder));
suite("SQLite", async () => {
  const journal = sqliteJournal({ directory: folder });
  await journal.open({ shards: 1, clusterId: "answers" });
  return journal;
});

const postgres = await startPostgres({ durable: false });
after(() => postgres.stop());
suite(
  "PostgreSQL",
  async () => {
    const journal = postgresJournal({ url: postgres.server().url(), schema: "answers", connectionsMax: 2 });
    await journal.open({ shards: 1, clusterId: "answers" });
    return journal;
  },
  { skip: postgres.skip },
);
