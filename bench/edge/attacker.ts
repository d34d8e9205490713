/**
 * One hostile peer in a separate process: `attacker.ts PORT NAME MS` attacks, reconnects when disconnected, and
 * reports.
 */
import { attackOnce, attacks } from "#h2/testing/attacks.ts";

const [port, name, ms] = process.argv.slice(2);
const next = attacks[name ?? ""];
if (!next) throw new Error(`no attack is called ${name}`);
const untilMono = performance.now() + Number(ms);
let turns = 0;
let connections = 0;
let sentAway = 0;
while (performance.now() < untilMono) {
  const once = await attackOnce("127.0.0.1", Number(port), next);
  connections += 1;
  turns += once.turns;
  if (once.sentAway) sentAway += 1;
}
console.log(JSON.stringify({ turns, connections, sentAway }));
