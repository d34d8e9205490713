// Preloaded (--import) when Millrace itself lives below node_modules, where Node will not strip types.
import { readFileSync } from "node:fs";
import { registerHooks, stripTypeScriptTypes } from "node:module";
import { fileURLToPath } from "node:url";

const ours = new URL("../src", import.meta.url).href;

// The first call warns that the function is experimental. We pin the Node it is called on, so that is
// nothing to tell every user at every start.
const emitWarning = process.emitWarning.bind(process);
process.emitWarning = () => {};
stripTypeScriptTypes("");
process.emitWarning = emitWarning;

registerHooks({
  load(url, context, nextLoad) {
    if (!url.startsWith(ours) || !url.endsWith(".ts")) return nextLoad(url, context);
    const source = stripTypeScriptTypes(readFileSync(fileURLToPath(url), "utf8"));
    return { format: "module", source, shortCircuit: true };
  },
});
