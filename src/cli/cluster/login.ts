import { Fault } from "#base/fault.ts";
import { formatDuration } from "#base/units.ts";
import { command, serverFlags } from "#door/command.ts";
import { askServer, serverOf } from "#app/client/server.ts";

export const login = command({
  name: "login",
  about: "Print a link that signs a browser in to a node: it works once, within minutes.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace login", "millrace login --server https://host:8980"],
  async run({ values }, { env, out }) {
    const server = serverOf(values, env);
    if (server.socket !== undefined)
      throw new Fault("invalid", "get a link to sign in", {
        why: "this node listens on no port that a browser could open",
        wants: "an address in edge.listen",
      });
    const answer = await askServer(server, "/v1/session/link", "get a link to sign in", { method: "POST" });
    const { path, forMs } = (await answer.json()) as { readonly path: string; readonly forMs: number };
    const url = `${server.base}${path}`;
    if (values.json) out(JSON.stringify({ url, forMs }));
    else {
      out(url);
      out(
        `Open it in a browser within ${formatDuration(forMs)}; it works once, and signs in as the user who ran this.`,
      );
    }
    return 0;
  },
});
