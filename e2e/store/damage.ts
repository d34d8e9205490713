/**
 * `npm run store:damage`: the whole matrix of damaged files; `--file PART` for some of them, `--tier` with a store
 * behind the node.
 */
import { parseArgs } from "node:util";
import { makeTemplate, tryCell, ways, type Way, type When } from "./damage-matrix.ts";

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { file: { type: "string" }, tier: { type: "boolean" } } });
  using template = await makeTemplate({ hasTier: values.tier === true });
  const { files } = template;
  let [cells, wrong] = [0, 0];
  for (const file of files.filter((one) => one.includes(values.file ?? "")))
    for (const way of Object.keys(ways) as Way[])
      for (const when of ["stopped", "serving"] as When[]) {
        if (killsProcess(file, way, when)) {
          console.log(`${file} ${way} while ${when}: not tried in this process, which SQLite's mapping would end`);
          continue;
        }
        const { lost, lostLater, refused, problems } = await tryCell(template, { file, way, when });
        cells += 1;
        wrong += problems.length > 0 ? 1 : 0;
        const how =
          refused === undefined
            ? `${lost} lost, ${lostLater} after a restart, healed`
            : `refused: ${refused.slice(0, 100)}`;
        console.log(`${file} ${way} while ${when}: ${problems.length > 0 ? `WRONG ${problems.join("; ")}` : how}`);
      }
  console.log(`${cells} cells, ${wrong} wrong`);
  if (wrong > 0) process.exitCode = 1;
}

/** SQLite maps this file into memory: reading behind its new end is a bus error. */
const killsProcess = (file: string, way: Way, when: When): boolean =>
  file.endsWith("-shm") && way === "truncated" && when === "serving";

if (import.meta.main) await main();
