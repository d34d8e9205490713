// Which room may import which. This table is the only place that says so: the lint rules (.oxlintrc.json), the picture
// in ARCHITECTURE.md and rooms.test.ts are all derived from it.

export const doors = ["build", "ci", "batch", "deploy", "shell"] as const;

/** Room -> the rooms it may import, besides itself. `*` is every room, `!x` removes x again. */
export const rooms = {
  base: [],
  swarm: ["base"],
  wire: ["base"],
  h2: ["base", "wire"],
  grpc: ["base", "wire", "h2"],
  access: ["base"],
  http: ["base", "access"],
  api: ["base", "access", "http"],
  edge: ["base", "wire", "h2", "grpc", "access", "http"],
  kernel: ["base"],
  records: ["base"],
  vault: ["base", "records"],
  audit: ["base", "records"],
  schedules: ["base", "records"],
  issuer: ["base", "access", "records", "vault"],
  effects: ["base", "records"],
  retention: ["base", "records", "blobs"],
  journal: ["base", "records"],
  blobs: ["base", "wire", "h2", "grpc"],
  sources: ["base", "access", "http", "records", "blobs"],
  mesh: ["base"],
  shard: ["base", "wire", "h2", "grpc", "kernel", "journal", "mesh", "blobs"],
  feed: ["base", "kernel", "records", "journal", "blobs", "shard"],
  webhooks: ["base", "kernel", "records", "vault", "sources", "feed"],
  pools: ["base", "records"],
  worker: ["base", "wire", "kernel", "blobs", "shard"],
  door: [
    "base",
    "access",
    "http",
    "grpc",
    "kernel",
    "records",
    "retention",
    "vault",
    "blobs",
    "sources",
    "shard",
    "worker",
    "edge",
  ],
  // never another door
  "doors/*": [
    "door",
    "base",
    "swarm",
    "wire",
    "h2",
    "grpc",
    "access",
    "http",
    "kernel",
    "records",
    "retention",
    "schedules",
    "vault",
    "effects",
    "blobs",
    "sources",
    "shard",
    "worker",
  ],
  console: ["base", "api"], // types only: nothing of the server is shipped to browsers
  app: ["*", "!sim", "!cli", "!console"],
  cli: ["base", "door", "wire", "http", "api", "vault", "audit", "blobs", "app", "shard"],
  sim: ["*"], // and no room imports sim
} as const satisfies Record<string, readonly string[]>;

/** Rooms that must behave the same on every replay: no clock, no randomness, no I/O, nothing of Node. */
export const pureRooms = ["base", "kernel", "swarm"] as const;

export const pureRoomGlobals = [
  "Date",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "fetch",
  "process",
  "performance",
  "crypto",
  "console",
] as const;

/** Every room by its folder below src/, with `doors/*` written out. */
export const roomNames: readonly string[] = Object.keys(rooms).flatMap((room) => expand(room));

export const isPure = (room: string): boolean => (pureRooms as readonly string[]).includes(room);

export function mayImport(from: string, to: string): boolean {
  return from === to || allowedFrom(from).has(to);
}

export function forbiddenFrom(room: string): readonly string[] {
  return roomNames.filter((other) => !mayImport(room, other));
}

/** The room of a path below src/ ("kernel/claims.ts" -> "kernel"), or undefined for a stray file. */
export function roomOf(pathBelowSrc: string): string | undefined {
  return roomNames.find((room) => pathBelowSrc.startsWith(`${room}/`));
}

function allowedFrom(room: string): ReadonlySet<string> {
  const rule: readonly string[] = ruleOf(room);
  const added = rule.filter((entry) => !entry.startsWith("!"));
  const removed = new Set(rule.filter((entry) => entry.startsWith("!")).flatMap((entry) => expand(entry.slice(1))));
  return new Set(added.flatMap((entry) => expand(entry)).filter((entry) => !removed.has(entry)));
}

function ruleOf(room: string): readonly string[] {
  const key = room.startsWith("doors/") ? "doors/*" : room;
  if (!(key in rooms)) throw new Error(`tools/rooms.ts: no room called ${room}`);
  return rooms[key as keyof typeof rooms];
}

function expand(entry: string): readonly string[] {
  if (entry === "*") return Object.keys(rooms).flatMap((room) => expand(room));
  if (entry === "doors/*") return doors.map((door) => `doors/${door}`);
  return [entry];
}
