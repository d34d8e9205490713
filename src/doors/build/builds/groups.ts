/**
 * Pure: which actions of a build share a stage of its job.
 *
 * A stage begins when all stages that it needs have ended. So actions share a stage only if they need the same actions
 * and are needed by the same actions: then no action waits for more than it needs. If that gives more stages than a job
 * may have, neighbours of the same depth are merged, and some actions wait longer than necessary.
 */

export type Node = {
  /** Indices of the actions that have to end before, each once. */
  readonly needs: readonly number[];
  /** Actions of different classes never share a stage: a stage has one set of required labels. */
  readonly class: string;
};

export type Group = { readonly actions: readonly number[]; readonly needs: readonly number[] };

export type Grouped =
  | { readonly kind: "groups"; readonly groups: readonly Group[] }
  /** The indices along the cycle. */
  | { readonly kind: "circle"; readonly places: readonly number[] }
  | { readonly kind: "too-deep"; readonly depth: number; readonly depthMax: number };

export type GroupLimits = { readonly groupsMax: number; readonly actionsMax: number };

type Draft = { readonly level: number; readonly class: string; readonly actions: number[]; readonly order: number };

export function groupActions(nodes: readonly Node[], limits: GroupLimits): Grouped {
  const consumers = consumersOf(nodes);
  const levels = levelsOf(nodes, consumers);
  if (!levels) return { kind: "circle", places: circleIn(nodes) };
  const exact = exactGroups(nodes, consumers, levels, limits.actionsMax);
  const cells = Map.groupBy(exact, (draft) => `${draft.level} ${draft.class}`);
  if (exact.length > limits.groupsMax && cells.size > limits.groupsMax)
    return { kind: "too-deep", depth: cells.size, depthMax: limits.groupsMax };
  const drafts = exact.length > limits.groupsMax ? [...coarser(cells, exact.length, limits.groupsMax)] : exact;
  return { kind: "groups", groups: joined(nodes, drafts) };
}

function consumersOf(nodes: readonly Node[]): readonly number[][] {
  const consumers: number[][] = nodes.map(() => []);
  for (const [place, { needs }] of nodes.entries()) for (const need of needs) consumers[need]?.push(place);
  return consumers;
}

/** The longest chain before each action; undefined if there is a cycle. */
function levelsOf(nodes: readonly Node[], consumers: readonly (readonly number[])[]): readonly number[] | undefined {
  const levels = nodes.map(() => 0);
  const open = nodes.map(({ needs }) => needs.length);
  const ready = open.flatMap((count, place) => (count === 0 ? [place] : []));
  for (const place of ready)
    for (const consumer of consumers[place] ?? []) {
      levels[consumer] = Math.max(levels[consumer] ?? 0, (levels[place] ?? 0) + 1);
      open[consumer] = (open[consumer] ?? 0) - 1;
      if (open[consumer] === 0) ready.push(consumer);
    }
  return ready.length === nodes.length ? levels : undefined;
}

/** Every action that remains has a need that remains, too: following these needs leads around the cycle. */
function circleIn(nodes: readonly Node[]): readonly number[] {
  const state: ("new" | "open" | "done")[] = nodes.map(() => "new");
  for (const start of nodes.keys()) {
    const path: { readonly place: number; next: number }[] = [{ place: start, next: 0 }];
    while (path.length > 0) {
      const top = path.at(-1) as { readonly place: number; next: number };
      if (state[top.place] === "done") path.pop();
      else {
        state[top.place] = "open";
        const need = nodes[top.place]?.needs[top.next++];
        if (need === undefined) state[top.place] = "done";
        else if (state[need] === "open") {
          const places = path.map(({ place }) => place);
          return places.slice(places.indexOf(need));
        } else if (state[need] === "new") path.push({ place: need, next: 0 });
      }
    }
  }
  return [];
}

function exactGroups(
  nodes: readonly Node[],
  consumers: readonly (readonly number[])[],
  levels: readonly number[],
  actionsMax: number,
): readonly Draft[] {
  const open = new Map<string, Draft>();
  const all: Draft[] = [];
  for (const [place, node] of nodes.entries()) {
    const waiting = consumers[place] ?? [];
    const alike = `${node.class}\0${sorted(node.needs).join()}\0${sorted(waiting).join()}`;
    let draft = open.get(alike);
    if (!draft || draft.actions.length >= actionsMax) {
      // Actions needed by the same ones become neighbours, in case they have to be merged.
      const order = Math.min(...waiting.slice(0, 1), nodes.length);
      draft = { level: levels[place] ?? 0, class: node.class, actions: [], order };
      open.set(alike, draft);
      all.push(draft);
    }
    draft.actions.push(place);
  }
  return all.toSorted((a, b) => a.level - b.level || a.order - b.order);
}

const sorted = (numbers: readonly number[]): readonly number[] => numbers.toSorted((a, b) => a - b);

/** Every cell keeps at least one group, and a share of the rest; a cell's neighbours are merged evenly. */
function* coarser(cells: ReadonlyMap<string, readonly Draft[]>, count: number, groupsMax: number): Generator<Draft> {
  const spare = count - cells.size;
  for (const drafts of cells.values()) {
    const buckets = 1 + Math.floor(((drafts.length - 1) * (groupsMax - cells.size)) / Math.max(1, spare));
    for (let bucket = 0; bucket < buckets; bucket += 1) {
      const from = Math.floor((bucket * drafts.length) / buckets);
      const to = Math.floor(((bucket + 1) * drafts.length) / buckets);
      const [first, ...rest] = drafts.slice(from, to);
      if (first) yield { ...first, actions: [...first.actions, ...rest.flatMap(({ actions }) => actions)] };
    }
  }
}

function joined(nodes: readonly Node[], drafts: readonly Draft[]): readonly Group[] {
  const groupOf = new Map<number, number>();
  for (const [group, { actions }] of drafts.entries()) for (const place of actions) groupOf.set(place, group);
  return drafts.map(({ actions }) => {
    const needs = new Set(
      actions.flatMap((place) => (nodes[place]?.needs ?? []).map((need) => groupOf.get(need) ?? 0)),
    );
    return { actions: sorted(actions), needs: sorted([...needs]) };
  });
}
