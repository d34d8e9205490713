/**
 * The trees, one for each stripe, planned once. Every member is inside one tree, where it has as many children as there
 * are stripes, and a leaf in all others: so each sends about as much as it receives, and all uplinks are used.
 *
 * PL2 A machine feeds more children than it has places for only where all places together do not suffice.
 * PL1 In each tree, one member of every rack takes its units from outside; the others take them from within the rack
 *     where it has places left. So a rack's uplink carries little more than one copy.
 */
export type PlanMember = {
  readonly id: number;
  readonly rack: string;
  /** How many children it can feed at the pace of a whole share; 0: it is a leaf everywhere. */
  readonly slots: number;
};

export type PlanInput = {
  readonly stripes: number;
  readonly origin: number;
  /** How many children the origin feeds in each tree. */
  readonly originSlots: number;
  /** In the order in which they are to be inside the trees: nearer the origin first. */
  readonly members: readonly PlanMember[];
};

/** Of the places of a rack's first member, this many are for first members of other racks. */
const acrossMax = 4;

/** A list that is taken from at the front. */
class Places {
  readonly #ids: number[] = [];
  #at = 0;

  add(id: number, times: number): void {
    for (let i = 0; i < times; i += 1) this.#ids.push(id);
  }

  take(): number | undefined {
    return this.#at < this.#ids.length ? this.#ids[this.#at++] : undefined;
  }
}

/** Calls back with each link of each tree; parents come before their children. Members without a place are left out. */
export function planTrees(input: PlanInput, link: (child: number, stripe: number, parent: number) => void): void {
  const { stripes, members } = input;
  const able = members.filter(({ slots }) => slots > 0);
  const racks = new Set(members.map(({ rack }) => rack));
  for (let stripe = 0; stripe < stripes; stripe += 1) {
    // Without enough members for every tree, the able ones are inside several.
    const inner = able.length >= stripes ? able.filter((_, index) => index % stripes === stripe) : turned(able, stripe);
    planTree({ ...input, inner, isOneRack: racks.size === 1 }, (child, parent) => link(child, stripe, parent));
  }
}

function planTree(
  {
    origin,
    originSlots,
    members,
    inner,
    isOneRack,
  }: PlanInput & { readonly inner: readonly PlanMember[]; readonly isOneRack: boolean },
  link: (child: number, parent: number) => void,
): void {
  const anywhere = new Places();
  const inRack = new Map<string, Places>();
  const placesOf = (rack: string): Places => {
    const known = inRack.get(rack) ?? new Places();
    inRack.set(rack, known);
    return known;
  };
  anywhere.add(origin, originSlots);
  const isInner = new Set(inner.map(({ id }) => id));
  const headOf = new Set<string>();
  // Where the places do not suffice, some members feed one child more. None does without need: all that hangs below it
  // would be slower for the whole time.
  const able = inner.reduce((sum, { slots }) => sum + slots, 0);
  const share = Math.max(1, (members.length - originSlots) / Math.max(1, able));
  let [due, given] = [0, 0];
  const offer = ({ id, rack, slots }: PlanMember, isHead: boolean): void => {
    due += slots * share;
    const places = Math.ceil(due - 1e-6) - given;
    given += places;
    const across = isOneRack || !isHead ? 0 : Math.min(acrossMax, Math.ceil(places / 2));
    anywhere.add(id, across);
    placesOf(rack).add(id, places - across);
  };
  const late: PlanMember[] = [];
  for (const member of inner) {
    if (headOf.has(member.rack)) late.push(member);
    else {
      headOf.add(member.rack);
      const parent = anywhere.take();
      if (parent === undefined) continue;
      link(member.id, parent);
      offer(member, true);
    }
  }
  for (const member of [...late, ...members.filter(({ id }) => !isInner.has(id))]) {
    const parent = placesOf(member.rack).take() ?? anywhere.take() ?? takeAny(inRack);
    if (parent === undefined) continue;
    link(member.id, parent);
    if (isInner.has(member.id)) offer(member, false);
  }
}

function takeAny(racks: ReadonlyMap<string, Places>): number | undefined {
  for (const places of racks.values()) {
    const id = places.take();
    if (id !== undefined) return id;
  }
  return undefined;
}

const turned = (members: readonly PlanMember[], by: number): readonly PlanMember[] => {
  const at = members.length === 0 ? 0 : by % members.length;
  return [...members.slice(at), ...members.slice(0, at)];
};
