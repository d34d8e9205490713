/** Queries as people write them: each splits, or runs as one task and says why; all answer what
       one process answers. */
import { deepEqual, equal, match } from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { LocalRuns } from "#doors/batch/testing/local-run.ts";
import { NearEngine } from "#doors/batch/testing/near-engine.ts";
import { compare, openOracle } from "#doors/batch/testing/oracle.ts";

/** By what it is about: the query, and why it is one task if it is. $o, $c and $e are orders, customers
       and events. */
const queries: Readonly<Record<string, readonly [sql: string, why?: RegExp]>> = {
  "common tables": [
    `with big as (select * from $o where cents > 500), by_customer as (select customer, sum(cents) as s
       from big group by 1)
     select country, max(s) as m from by_customer join $c using (customer) group by country order by country`,
  ],
  "a common table that is used twice": [
    `with t as (select customer, count(*) as n from $o group by 1)
     select a.customer, a.n, b.n as other from t a join t b on a.customer = b.customer + 1 order by 1`,
  ],
  "a recursive table": [
    `with recursive r(n) as (select 1 union all select n + 1 from r
       where n < 20) select n, (select count(*) from $o where customer = n) as c from r order by n`,
    /./,
  ],
  "a correlated value": [
    `select customer, (select max(cents) from $o o where o.customer = c.customer) as most from $c c
       order by customer`,
  ],
  "a correlated query with an inequality": [
    `select customer from $c c where exists (select 1 from $o o where o.customer = c.customer
       and o.cents > c.customer * 20) order by 1`,
  ],
  "queries within queries within queries": [
    `select count(*) as n from $o where customer in (select customer from $c
       where country in (select country from $c where customer < 5))`,
  ],
  "any and all": [
    `select count(*) as n from $o where cents >= all (select cents from $o where customer = 3)`,
    /a correlated IN/,
  ],
  "texts that are empty": [
    `select coalesce(nullif(country, 'fr'), '') as c, count(*) as n, string_agg(distinct country, ''
       order by country) as s from $c where country <> '' group by 1 order by 1`,
  ],
  "lateral joins": [
    `select c.customer, t.cents from $c c, lateral (select cents from $o o
       where o.customer = c.customer order by cents desc, id limit 2) t order by 1, 2`,
  ],
  "lateral series": [`select customer, n from $c, lateral (select unnest(range(customer % 3)) as n) order by 1, 2`],
  qualify: [
    `select customer, id, cents from $o qualify row_number() over (partition by customer
       order by cents desc, id) <= 2 order by 1, 2`,
  ],
  "frames of rows": [
    `select id, sum(cents) over (partition by customer order by ts, id rows between 3 preceding
       and 1 following) as s from $o`,
  ],
  "frames of groups": [
    `select id, count(*) over (partition by customer order by cents groups between 1 preceding
       and current row) as n from $o`,
  ],
  "frames of a range of values": [
    `select id, count(*) over (partition by customer order by ts range between interval 2 hours preceding
       and current row) as n from $o`,
  ],
  "frames of a range of numbers, downwards": [
    `select id, sum(id) over (partition by customer order by cents desc range between 50 preceding
       and 10 following) as s from $o`,
  ],
  "frames that leave rows out": [
    `select id, max(cents) over (partition by customer order by ts, id rows between unbounded preceding
       and unbounded following exclude current row) as m from $o`,
  ],
  "a window by name": [
    `select id, rank() over w as r, lag(cents, 1, 0) over w as l from $o window w
       as (partition by customer order by cents, id)`,
  ],
  "windows of different partitions": [
    `select id, count(*) over (partition by customer) as a, count(*) over (partition by cents) as b from $o`,
  ],
  "a share of all": [
    `select customer, sum(cents) / sum(sum(cents)) over () as share from $o group by customer order by 1`,
  ],
  "grouping sets": [
    `select customer % 3 as a, cents % 4 as b, sum(cents) as s, count(*) as n from $o
       group by grouping sets ((a, b), (a), ()) order by a nulls last, b nulls last`,
  ],
  "a grouping set of one key and that of all rows": [
    `select customer % 3 as a, median(cents) as m from $o group by grouping sets ((a), ()) order by 1`,
  ],
  rollup: [`select customer % 3 as a, cents % 4 as b, avg(cents) as m from $o group by rollup (a, b) order by 1, 2`],
  "cube with grouping": [
    `select customer % 3 as a, cents % 2 as b, grouping(a, b) as g, count(*) as n from $o
       group by cube (a, b) order by 1, 2, 3`,
  ],
  "group by all": [`select customer % 5 as k, min(ts) as first, max(ts) as last from $o group by all order by all`],
  "counts of distinct values": [
    `select customer, count(distinct cents) as a, count(distinct id % 7) as b from $o group by 1 order by 1`,
  ],
  "aggregates with filters": [
    `select count(*) filter (where cents > 500) as a, sum(cents) filter (where customer = 1) as b from $o`,
  ],
  "ordered aggregates": [
    `select customer, string_agg(id::varchar, ',' order by cents, id) as ids from $o group by 1 order by 1`,
  ],
  "lists without an order": [`select list(id) is not null as l from $o`, /without an order/],
  "lists of rows": [
    `select customer, list_slice(list(id order by id), 1, 3) as few from $o group by 1 order by 1`,
    /list without an order/,
  ],
  quantiles: [
    `select customer % 3 as k, median(cents) as m, quantile_cont(cents, 0.9) as q from $o group by 1 order by 1`,
  ],
  "several quantiles": [`select quantile_disc(cents, [0.1, 0.5]) as q from $o`, /quantile_disc/],
  "the row of a maximum": [`select customer, arg_max(id, cents * 1000 + id) as best from $o group by 1 order by 1`],
  histogram: [`select histogram(cents % 5) as h from $o`],
  mode: [
    `select customer, max(cents % 3) as m, bool_and(cents > 0) as b, product(1) as p from $o group by 1 order by 1`,
  ],
  "distinct on": [`select distinct on (customer) customer, id from $o order by customer, cents desc, id`],
  distinct: [`select distinct customer % 4 as k, cents % 3 as l from $o order by 1, 2`],
  pivot: [`select * from (pivot $e on kind in ('view', 'buy') using count(*) group by customer) order by customer`],
  unpivot: [
    `select customer, name, value from (select customer, cents, id from $o where id < 50)
       unpivot (value for name in (cents, id)) order by all`,
  ],
  "the case pivot of old": [
    `select customer, sum(case when kind = 'view' then 1 else 0 end) as views, sum(case kind when 'buy'
       then 1 end) as buys from $e group by 1 order by 1`,
  ],
  "asof joins": [
    `select o.id, e.kind from $o o asof join $e e on o.customer = e.customer and o.ts >= e.ts order by o.id`,
    /./,
  ],
  "positional joins": [`select count(*) as n from $o positional join $e`, /./],
  "full joins": [
    `select coalesce(o.customer, c.customer) as k, count(o.id) as n from $o o full join $c c
       on o.customer = c.customer + 2 group by 1 order by 1`,
  ],
  "joins by inequality": [
    `select count(*) as n from $c a join $c b on a.customer < b.customer and a.country = b.country`,
  ],
  "joins by a range": [
    `select count(*) as n from $e e join $o o on e.ts between o.ts and o.ts + interval 5 minutes and o.customer < 3`,
  ],
  "semi and anti joins": [
    `select (select count(*) from $c c semi join $o o using (customer)) as a, (select count(*)
       from $c c anti join $o o on o.customer = c.customer + 5) as b`,
  ],
  "not in with nulls": [
    `select count(*) as n from $o where customer not in (select nullif(customer, 3) from $c where customer < 9)`,
  ],
  "cross joins": [`select count(*) as n, sum(a.customer * b.customer) as s from $c a, $c b`],
  "union by name": [
    `select customer, cents from $o union all by name select customer, 0 as cents from $e order by all limit 20`,
  ],
  "except and intersect": [
    `(select customer from $o) intersect (select customer + 1 from $e) except (select 5) order by 1`,
  ],
  "star without some": [`select * exclude (ts) replace (cents * 2 as cents) from $o order by id limit 10`],
  "columns by pattern": [`select max(columns('c.*')) from $o`],
  "from first": [
    `from $o select customer, count(*) as n group by customer having n > 3 order by n desc, customer limit 5`,
  ],
  "texts and patterns": [
    `select regexp_extract(country, '^(.)', 1) as k, count(*)
       as n, any_value(upper(country) || '!') is not null as t from $c
       where country similar to '(fr|d.)' group by 1 order by 1`,
  ],
  time: [
    `select date_trunc('hour', ts) as h, extract(dow from ts) as d, time_bucket(interval '3 hours', ts)
       as b, count(*) as n from $o group by all order by all`,
  ],
  structs: [
    `select t.a as a, sum(t.b) as s from (select {'a': customer % 3, 'b': cents} as t from $o) group by 1 order by 1`,
  ],
  lists: [
    `select customer, list_sum(l) as s from (select customer, [cents, id, 1] as l from $o) order by all limit 30`,
  ],
  lambdas: [`select id, list_transform([cents, id], lambda x: x + 1) as l from $o order by id limit 5`, /lambda/],
  json: [
    `select json_extract_string('{"a": ' || customer || '}', '$.a')::int as a, count(*) as n from $o
       group by 1 order by 1`,
    /./,
  ],
  unnest: [`select u, count(*) as n from (select unnest([customer % 2, 7]) as u from $o) group by 1 order by 1`],
  maps: [`select map_keys(map {'k': customer}) as k, count(*) as n from $o group by 1`],
  "case and coalesce": [
    `select case when cents < 300 then 'low' when cents < 600 then 'mid' else 'high' end as band, count(*)
       as n from $o group by 1 order by 1`,
  ],
  "top of each with a join": [
    `select c.country, o.id from (select *, dense_rank() over (partition by customer order by cents desc)
       as r from $o) o join $c c using (customer) where r = 1 order by 1, 2`,
  ],
  "gaps and islands": [
    `select customer, count(*) as runs from (select customer, id - row_number()
       over (partition by customer order by id) as g from $o) group by customer, g order by 1, 2`,
  ],
  sessions: [
    `select customer, sum(is_new) as sessions from (select customer, case when ts - lag(ts)
       over (partition by customer order by ts, id) > interval 1 hour then 1 else 0 end as is_new
       from $o) group by 1 order by 1`,
  ],
  "running totals": [`select id, sum(cents) over (order by id) as total from $o order by id limit 20`],
  "a limit in percent": [`select count(*) as n from (select id from $o order by id limit 10%)`, /limit/],
  samples: [`select count(*) >= 0 as is_some from $o using sample 10 percent (bernoulli, 3)`, /./],
  "what differs each time": [`select count(*) as n from $o where random() >= 0`, /random/],
  "two aggregates of two tables": [`select (select sum(cents) from $o) + (select count(*) from $e) as t`],
  "decimals and wide sums": [
    `select sum(cents::decimal(12,3)) as a, sum(id::hugeint) as b, avg(cents::decimal(9,2)) as c from $o`,
  ],
  intervals: [`select customer, max(ts) - min(ts) as d from $o group by 1 order by 1`],
  "bits and enums": [
    `select sum(cents & 7) as a, bit_xor(id) as b, count(kind::enum('view', 'buy', 'leave')) as c from $e`,
    /./,
  ],
};

describe("a query of others", () => {
  let runs: LocalRuns;
  const oracle = openOracle();
  const settings = { splitBytes: 4_000, broadcastBytes: 1_000, partitions: 3, reduceBytes: 2_000 };
  before(async () => {
    runs = await LocalRuns.on(await NearEngine.open());
    const write = async (name: string, select: string): Promise<void> => {
      await (await oracle).run(`copy (${select}) to '${runs.folder}/${name}.parquet' (row_group_size 2048)`);
    };
    const ts = "timestamp '2026-01-01' + to_minutes(range * 7 % 3000)";
    await write(
      "o",
      `select range as id, (range * 31 % 40)::int as customer, (range * 37 % 997)::int as cents, ${ts}
       as ts from range(6000)`,
    );
    await write(
      "c",
      `select range::int as customer, ['fr', 'de', 'jp'][range % 3 + 1]
       as country, sha256(range::varchar) || sha256((range * 7)::varchar) as note from range(45)`,
    );
    await write(
      "e",
      `select range as id, (range * 13 % 40)::int as customer, ['view', 'buy', 'leave'][range % 3 + 1]
       as kind, ${ts} as ts, range % 5 as cents from range(5000)`,
    );
  });
  after(() => runs[Symbol.asyncDispose]());

  for (const [about, [template, why]] of Object.entries(queries))
    test(about, async () => {
      const sql = template.replaceAll(/\$([oce])\b/g, (_, name: string) => `'${runs.folder}/${name}.parquet'`);
      const answer = await runs.run(sql, settings);
      const { isSame, want, got } = await compare(await oracle, sql, answer, /\border by [^)]*$/.test(sql));
      deepEqual(isSame ? [] : got, isSame ? [] : want);
      const { how } = answer.plan;
      if (why) match(how.kind === "one" ? how.why : "cut into stages", why);
      else equal(how.kind === "one" ? how.why : "cut into stages", "cut into stages");
    });
});
