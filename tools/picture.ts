import { mayImport, rooms } from "./rooms.ts";

const begin = "<!-- rooms:begin (drawn by `npm run generate` from tools/rooms.ts) -->";
const end = "<!-- rooms:end -->";

/** The same Markdown with the picture between its two markers redrawn. */
export function withPicture(markdown: string): string {
  const from = markdown.indexOf(begin);
  const to = markdown.indexOf(end);
  if (from < 0 || to < from) throw new Error(`ARCHITECTURE.md: the markers ${begin} and ${end} are missing`);
  return `${markdown.slice(0, from)}${begin}\n\`\`\`mermaid\n${drawRooms()}\`\`\`\n${markdown.slice(to)}`;
}

/** Rooms as boxes, "may import" as arrows; arrows that others imply are left out. */
export function drawRooms(): string {
  const all = Object.keys(rooms);
  const drawn = all.filter((room) => room !== "sim"); // sim may import everything: its arrows would hide the rest
  const lines = ["flowchart TD"];
  for (const room of drawn) lines.push(`  ${boxName(room)}["${room}"]`);
  lines.push('  sim["sim (may import every room; no room imports it)"]');
  for (const from of drawn) {
    const direct = drawn.filter((to) => to !== from && allowed(from, to));
    const needed = direct.filter((to) => !direct.some((via) => via !== to && allowed(via, to)));
    for (const to of needed) lines.push(`  ${boxName(from)} --> ${boxName(to)}`);
  }
  return `${lines.join("\n")}\n`;
}

const boxName = (room: string): string => room.replace("/*", "");

const allowed = (from: string, to: string): boolean => mayImport(oneOf(from), oneOf(to)) && from !== to;

const oneOf = (room: string): string => (room === "doors/*" ? "doors/build" : room);
