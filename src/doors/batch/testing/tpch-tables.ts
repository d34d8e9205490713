/**
 * Tables in the shape of the TPC-H benchmark, made by SQL: the same columns, keys and ratios, other texts and
 * distributions than the benchmark's own generator writes. Answers over them are compared with each other only.
 */
import type { DuckDBConnection } from "@duckdb/node-api";

const pick = (list: readonly string[], n: string): string =>
  `[${list.map((one) => `'${one}'`).join(", ")}][((${n}) % ${list.length} + 1)::BIGINT]`;

const h = (n: number): string => `hash(range, ${n})::HUGEINT`;
const word = (n: number): string =>
  pick(["green", "almond", "forest", "blush", "special", "lemon", "navy", "requests", "pale", "deposits"], h(n));

const segments = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"];
const priorities = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"];
const modes = ["AIR", "AIR REG", "MAIL", "SHIP", "TRUCK", "RAIL", "FOB"];
const instructions = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"];
const nations = [
  ..."ALGERIA ARGENTINA BRAZIL CANADA EGYPT ETHIOPIA FRANCE GERMANY INDIA INDONESIA IRAN IRAQ JAPAN JORDAN KENYA".split(
    " ",
  ),
  ..."MOROCCO MOZAMBIQUE PERU CHINA ROMANIA".split(" "),
  "SAUDI ARABIA",
  ..."VIETNAM RUSSIA".split(" "),
  "UNITED KINGDOM",
  "UNITED STATES",
];
const regions = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];

export const tpchNames = [
  "customer",
  "lineitem",
  "nation",
  "orders",
  "part",
  "partsupp",
  "region",
  "supplier",
] as const;

export async function writeTpchTables(
  connection: DuckDBConnection,
  folder: string,
  scale: number,
  rowGroupRows = 8_192,
): Promise<void> {
  const count = (atOne: number): number => Math.max(5, Math.round(atOne * scale));
  const customers = count(150_000);
  const suppliers = count(10_000);
  const parts = count(200_000);
  const orders = count(1_500_000);
  const money = (n: number, from: number, to: number): string =>
    `(${from} + (${h(n)} % ${(to - from) * 100}) / 100.0)::DECIMAL(15,2)`;
  const queries: Readonly<Record<(typeof tpchNames)[number], string>> = {
    region: `select range::INTEGER as r_regionkey, ${pick(regions, "range")} as r_name, ${word(1)} as r_comment from range(5)`,
    nation: `select range::INTEGER as n_nationkey, ${pick(nations, "range")} as n_name, (${h(1)} % 5)::INTEGER as n_regionkey, ${word(2)} as n_comment from range(25)`,
    supplier:
      `select range + 1 as s_suppkey, 'Supplier#' || (range + 1) as s_name, ${word(1)} as s_address, (${h(2)} % 25)::INTEGER as s_nationkey, ` +
      `(10 + ${h(3)} % 25) || '-' || (${h(4)} % 1000) as s_phone, ${money(5, -999, 9_999)} as s_acctbal, ` +
      `${word(6)} || case when ${h(7)} % 40 = 0 then ' Customer of Complaints' else '' end as s_comment from range(${suppliers})`,
    customer:
      `select range + 1 as c_custkey, 'Customer#' || (range + 1) as c_name, ${word(1)} as c_address, (${h(2)} % 25)::INTEGER as c_nationkey, ` +
      `(10 + ${h(3)} % 25) || '-' || (${h(4)} % 1000) as c_phone, ${money(5, -999, 9_999)} as c_acctbal, ` +
      `${pick(segments, h(6))} as c_mktsegment, ${word(7)} as c_comment from range(${customers})`,
    part:
      `select range + 1 as p_partkey, ${word(1)} || ' ' || ${word(2)} as p_name, 'Manufacturer#' || (1 + ${h(3)} % 5) as p_mfgr, ` +
      `'Brand#' || (1 + ${h(3)} % 5) || (1 + ${h(4)} % 5) as p_brand, ` +
      `${pick(["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"], h(5))} || ' ' || ${pick(["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"], h(6))} || ' ' || ` +
      `${pick(["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"], h(7))} as p_type, (1 + ${h(8)} % 50)::INTEGER as p_size, ` +
      `${pick(["SM", "LG", "MED", "JUMBO", "WRAP"], h(9))} || ' ' || ${pick(["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"], h(10))} as p_container, ` +
      `${money(11, 900, 2_000)} as p_retailprice, ${word(12)} as p_comment from range(${parts})`,
    partsupp:
      `select range // 4 + 1 as ps_partkey, (range // 4 + (range % 4) * ${Math.max(1, Math.floor(suppliers / 4))}) % ${suppliers} + 1 as ps_suppkey, ` +
      `(1 + ${h(1)} % 9999)::INTEGER as ps_availqty, ${money(2, 1, 1_000)} as ps_supplycost, ${word(3)} as ps_comment from range(${parts * 4})`,
    orders:
      `select range + 1 as o_orderkey, (1 + (${h(1)} % ${customers}) // 3 * 3 % ${customers})::BIGINT as o_custkey, ${pick(["F", "O", "P"], h(2))} as o_orderstatus, ` +
      `${money(3, 900, 400_000)} as o_totalprice, DATE '1992-01-01' + (${h(4)} % 2400)::INTEGER as o_orderdate, ` +
      `${pick(priorities, h(5))} as o_orderpriority, 'Clerk#' || (${h(6)} % 1000) as o_clerk, 0 as o_shippriority, ` +
      `${word(7)} || ' ' || ${word(8)} as o_comment from range(${orders})`,
    lineitem:
      `select range // 4 + 1 as l_orderkey, (1 + ${h(1)} % ${parts})::BIGINT as l_partkey, ` +
      `((${h(1)} % ${parts} + (${h(2)} % 4) * ${Math.max(1, Math.floor(suppliers / 4))}) % ${suppliers} + 1)::BIGINT as l_suppkey, ` +
      `(range % 4 + 1)::INTEGER as l_linenumber, (1 + ${h(3)} % 50)::DECIMAL(15,2) as l_quantity, ${money(4, 900, 90_000)} as l_extendedprice, ` +
      `((${h(5)} % 11) / 100.0)::DECIMAL(15,2) as l_discount, ((${h(6)} % 9) / 100.0)::DECIMAL(15,2) as l_tax, ` +
      `${pick(["R", "A", "N"], h(7))} as l_returnflag, ${pick(["O", "F"], h(8))} as l_linestatus, ` +
      `DATE '1992-01-01' + (hash(range // 4, 4)::HUGEINT % 2400 + ${h(9)} % 120)::INTEGER as l_shipdate, ` +
      `DATE '1992-01-01' + (hash(range // 4, 4)::HUGEINT % 2400 + 30 + ${h(10)} % 60)::INTEGER as l_commitdate, ` +
      `DATE '1992-01-01' + (hash(range // 4, 4)::HUGEINT % 2400 + ${h(9)} % 120 + 1 + ${h(11)} % 30)::INTEGER as l_receiptdate, ` +
      `${pick(instructions, h(12))} as l_shipinstruct, ${pick(modes, h(13))} as l_shipmode, ${word(14)} as l_comment from range(${orders * 4})`,
  };
  for (const name of tpchNames)
    await connection.run(
      `copy (${queries[name]}) to '${folder}/${name}.parquet' (format parquet, row_group_size ${rowGroupRows})`,
    );
}
