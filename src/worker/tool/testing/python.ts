/** What runs the tool of the tests: the system's own Python, which every sandbox and every user of a lane sees. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const python = "/usr/bin/python3";

export const testingTool = fileURLToPath(new URL("./tool.py", import.meta.url));

/** Why tests with it are left out, if they are. */
export const withoutTool: string | false =
  process.platform !== "linux" ? "needs linux" : !existsSync(python) && `needs python: ${python}`;
