/**
 * Cuts DuckDB's optimised plan at exchanges. Pure: the same plan and the same facts give the same stages, so that
 * planning can be repeated by anybody.
 *
 * It is called again whenever stages have ended. An operator that needs a stage which has not run yet asks for it and
 * has no fragment; what can be cut beside it is asked for in the same call, and runs at the same time.
 */
import { typeSql } from "#doors/batch/plan/column-types.ts";
import { expressionSql, typeOf } from "#doors/batch/plan/expressions.ts";
import { isOne, mapped, movedSpread, selectAll, type Fragment } from "./fragment.ts";
import { familyOf, type PartitionKey } from "#doors/batch/plan/partitioner.ts";
import { mapTable, type How, type PlannedMap } from "#doors/batch/plan/map-function.ts";
import { parsePlan, type PlanExpression, type PlanNode, type PlanType } from "#doors/batch/plan/plan-json.ts";
import { columnName, columnNames } from "#doors/batch/plan/quoting.ts";
import { partitionsOf, type CutSettings } from "#doors/batch/plan/settings.ts";
import { sourceBytes, sourceId, type Source, type SourceColumn } from "#doors/batch/plan/source.ts";
import { stageOf, type Facts, type Input, type Output, type Stage, type StageFacts } from "#doors/batch/plan/stage.ts";
import { sourceTable } from "#doors/batch/plan/source.ts";
import { typeNamed } from "#doors/batch/plan/type-names.ts";
import { Unsplittable } from "#doors/batch/plan/unsplittable.ts";

/** Undefined: stages that have not ended are needed first. */
export type Cut = Fragment | undefined;

/** Cuts one operator and all below it. */
export type Operator = (node: PlanNode, cutter: Cutter) => Cut;

export type CutInput = {
  readonly how: How;
  readonly columns: readonly SourceColumn[];
  readonly maps?: readonly PlannedMap[];
  readonly sources: readonly Source[];
  readonly settings: CutSettings;
};

const depthMax = 200;

/** A plan is cut once for each wave. */
const plans = new WeakMap<How, PlanNode>();

function parsed(how: Extract<How, { kind: "stages" }>): PlanNode {
  const plan = plans.get(how) ?? parsePlan(how.plan);
  plans.set(how, plan);
  return plan;
}

export class Cutter {
  readonly sources: readonly Source[];
  readonly settings: CutSettings;
  readonly partitions: number;
  readonly wanted = new Map<string, Stage>();
  /** Stages that have ended and that the query goes on from. */
  readonly used = new Map<string, Stage>();
  readonly #operator: Operator;
  readonly #facts: Facts;
  readonly #sourceIds: readonly string[];
  readonly #maps: readonly PlannedMap[];
  readonly #mapped = new Map<number, Cut>();
  #ctes = new Map<number, Cut>();
  #delims: (Fragment | undefined)[] = [];
  #depth = 0;

  constructor({ sources, settings, maps = [] }: CutInput, facts: Facts, operator: Operator) {
    this.#maps = maps;
    this.#operator = operator;
    this.sources = sources;
    this.settings = settings;
    this.#facts = facts;
    this.#sourceIds = sources.map(sourceId);
    this.partitions = partitionsOf(
      settings,
      sources.reduce((sum, one) => sum + sourceBytes(one), 0),
    );
  }

  stage(about: string, { branches, types }: Fragment, output: Output): Stage {
    return stageOf({ about, branches, types, output }, this.#sourceIds);
  }

  facts(stage: string): StageFacts | undefined {
    return this.#facts.get(stage);
  }

  /** What is known of it if it has ended; asks for it otherwise. */
  need(stage: Stage): StageFacts | undefined {
    const facts = this.#facts.get(stage.id);
    (facts ? this.used : this.wanted).set(stage.id, stage);
    return facts;
  }

  cut(node: PlanNode): Cut {
    this.#depth += 1;
    if (this.#depth > depthMax) throw new Unsplittable(`a plan more than ${depthMax} operators deep`);
    try {
      return this.#operator(node, this);
    } finally {
      this.#depth -= 1;
    }
  }

  /** All of a query: the one that was asked, or the one whose rows a function gets. */
  query({ how, columns }: Pick<CutInput, "how" | "columns">): Cut {
    if (how.kind === "one") return this.#asOne(how, columns);
    const [ctes, delims] = [this.#ctes, this.#delims];
    this.#ctes = new Map();
    this.#delims = [];
    try {
      return this.cut(parsed(how));
    } finally {
      this.#ctes = ctes;
      this.#delims = delims;
    }
  }

  #asOne({ sql, maps = [] }: Extract<How, { kind: "one" }>, columns: readonly SourceColumn[]): Cut {
    const names = columnNames(columns.length);
    const inputs: Input[] = this.sources.map((_, source) => ({
      name: sourceTable(source),
      from: "source",
      source,
      take: "all",
    }));
    for (const index of maps) {
      const stage = this.#mapStage(index);
      if (!stage || !this.need(stage)) return undefined;
      const of = this.#maps[index]?.function.schema.map(({ name }) => name) ?? [];
      inputs.push({ name: mapTable(index), from: "stage", stage: stage.id, take: "all", columns: of });
    }
    return {
      branches: [{ sql: `(select ${names} from (${sql}) t(${names}))`, inputs, parts: { by: "one" } }],
      types: columns.map(({ type }) => typeNamed(type)),
      spread: { kind: "one" },
      bytes: this.sources.reduce((sum, one) => sum + sourceBytes(one), 0),
    };
  }

  /** What a function returned. */
  mapped(index: number): Cut {
    if (!this.#mapped.has(index)) this.#mapped.set(index, this.#readMapped(index));
    return this.#mapped.get(index);
  }

  #readMapped(index: number): Cut {
    const stage = this.#mapStage(index);
    const facts = stage && this.need(stage);
    return stage && facts && this.#shared(stage, facts);
  }

  #mapStage(index: number): Stage | undefined {
    const map = this.#maps[index];
    if (!map) throw new Unsplittable(`a function ${index} that the query does not have`);
    const rows = this.query(map);
    if (!rows) return undefined;
    const { function: called, columns } = map;
    return stageOf(
      {
        about: `function ${map.name}`,
        branches: rows.branches,
        types: called.schema.map(({ type }) => typeNamed(type)),
        output: { kind: "whole" },
        map: { function: called, columns },
      },
      this.#sourceIds,
    );
  }

  only(node: PlanNode): Cut {
    return this.cut(childOf(node, 0));
  }

  setCte(index: number, rows: Cut): void {
    this.#ctes.set(index, rows);
  }

  cte(index: number): Cut {
    if (!this.#ctes.has(index)) throw new Unsplittable("a recursive table");
    return this.#ctes.get(index);
  }

  /** The left side of the nearest join above that hands its distinct rows down. */
  withDelim(rows: Cut, then: () => Cut): Cut {
    if (this.#delims.length > 0) throw new Unsplittable("correlated queries within each other");
    this.#delims.push(rows);
    try {
      return then();
    } finally {
      this.#delims.pop();
    }
  }

  delim(): Cut {
    if (this.#delims.length === 0) throw new Unsplittable("a correlated query that is not within another");
    return this.#delims.at(-1);
  }

  /** Rows with equal keys come into one task. Undefined while that has not run. */
  partitioned(fragment: Fragment, keys: readonly PartitionKey[], about: string): Cut {
    const { partitions } = this;
    const stage = this.stage(about, fragment, { kind: "hash", keys, partitions });
    const facts = this.need(stage);
    if (!facts) return undefined;
    const spread = { kind: "hash", keys: keys.map(({ sql }) => sql), families: keys.map(({ type }) => familyOf(type)) };
    return readStage(stage, facts, { by: "partition" }, spread as Fragment["spread"]);
  }

  /** The same for rows of groups; if they turn out to be few, what follows needs one task only. */
  grouped(fragment: Fragment, keys: readonly PartitionKey[], about: string): Cut {
    const moved = this.partitioned(fragment, keys, about);
    return moved && moved.bytes <= this.settings.broadcastBytes ? this.whole(moved) : moved;
  }

  /** All rows in one task. With `isStored` even if they are there already: others will read them as well. */
  gather(fragment: Fragment, about: string, isStored = false): Cut {
    if (isOne(fragment) && !isStored) return fragment;
    const stage = this.stage(about, fragment, { kind: "whole" });
    const facts = this.need(stage);
    if (!facts) return undefined;
    return isStored ? this.#shared(stage, facts) : readStage(stage, facts, { by: "one" }, { kind: "one" });
  }

  /** What is large goes on as many tasks. */
  #shared(stage: Stage, facts: StageFacts): Fragment {
    return facts.bytes > this.settings.broadcastBytes && facts.packs > 1
      ? readStage(stage, facts, { by: "pack", stage: stage.id }, { kind: "any" })
      : readStage(stage, facts, { by: "one" }, { kind: "one" });
  }

  /** What was partitioned turned out to be small: every task may read all of it. */
  whole(fragment: Fragment): Fragment {
    const stage = fragment.stage === undefined ? undefined : this.used.get(fragment.stage);
    const facts = stage && this.facts(stage.id);
    if (!stage || !facts) throw new Unsplittable("a part of a stage as a whole");
    return readStage(stage, facts, { by: "one" }, { kind: "one" });
  }
}

function readStage(
  stage: Stage,
  { bytes }: StageFacts,
  parts: Fragment["branches"][number]["parts"],
  spread: Fragment["spread"],
): Fragment {
  const take = parts.by === "one" ? "all" : "part";
  const input: Input = { name: `k${stage.id}_${take}`, from: "stage", stage: stage.id, take };
  const sql = `(${selectAll(stage.types.length, input.name)})`;
  return { branches: [{ sql, inputs: [input], parts }], types: stage.types, spread, bytes, stage: stage.id };
}

export const readInOrder = (stage: Stage, facts: StageFacts, order: string): Fragment => {
  const read = readStage(stage, facts, { by: "range", stage: stage.id }, { kind: "any" });
  return mapped(read, (from) => `select ${columnNames(stage.types.length)} from ${from} order by ${order}`);
};

export function projected(below: Fragment, list: readonly PlanExpression[]): Fragment {
  const columns = list.map((one, i) => `${expressionSql(one)} as ${columnName(i)}`);
  const types = list.map(typeOf);
  for (const type of types) typeSql(type); // refuses what could not be handed on
  const from = list.map((one) => (one.expression_class === "BOUND_REF" ? (one.index ?? 0) : undefined));
  return mapped(below, (rows) => `select ${columns.join(", ") || "1 as c0"} from ${rows}`, {
    types,
    spread: movedSpread(below.spread, from),
  });
}

export function childOf({ type, children = [] }: PlanNode, index: number): PlanNode {
  const child = children[index];
  if (!child) throw new Unsplittable(`${type} without what is below it`);
  return child;
}

export function typeAt({ types }: Fragment, index: number): PlanType {
  const type = types[index];
  if (!type) throw new Unsplittable(`a column ${index} of ${types.length}`);
  return type;
}

export const keysOf = (list: readonly PlanExpression[]): readonly PartitionKey[] =>
  list.map((one) => ({ sql: expressionSql(one), type: typeOf(one) }));

/** All columns, as keys. */
export const allKeys = ({ types }: Fragment): readonly PartitionKey[] =>
  types.map((type, i) => ({ sql: columnName(i), type }));
