/** The interpreter of the test tool: the system's Python, which every sandbox and every lane's user sees. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const python = "/usr/bin/python3";

export const testingTool = fileURLToPath(new URL("./tool.py", import.meta.url));

/** Why tests with it are skipped, if they are. */
export const withoutTool: string | false =
  process.platform !== "linux" ? "needs linux" : !existsSync(python) && `needs python: ${python}`;
