import type { DrainView } from "#app/node/drain.ts";
import { formatDuration } from "#base/units.ts";
import { command, serverFlags, type World } from "#door/command.ts";
import { askServer, hasEnded, serverOf, type Server } from "#app/client/server.ts";

const path = "/v1/node/drain";
const doing = "drain node";
const lookEveryMs = 200;

export const drain = command({
  name: "drain",
  about: "Take a node out of service: no more work, what runs may end, shards go to others; then it leaves.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...serverFlags,
    within: { type: "string", value: "DURATION", about: "how long what runs may go on, such as 30m; 10m if left out" },
    stay: { type: "boolean", about: "do not leave when nothing runs any more: --resume brings it back" },
    resume: { type: "boolean", about: "undo it: take work and shards again" },
    detach: { type: "boolean", about: "do not wait until it is done" },
  },
  examples: ["millrace drain", "millrace drain --within 30m --stay", "millrace drain --resume"],
  async run({ values }, world) {
    if (values.resume && (values.stay || values.within !== undefined || values.detach)) {
      world.note("drain: --resume takes no other flag but those of the node");
      return 2;
    }
    const server = serverOf(values, world.env);
    if (values.resume) {
      tell(await call(server, "DELETE"), values.json, world);
      return 0;
    }
    const query = new URLSearchParams({ leave: String(!values.stay), ...(values.within && { within: values.within }) });
    const begun = await call(server, "POST", `?${query.toString()}`);
    tell(begun, values.json, world);
    return values.detach ? 0 : await followed(server, begun, values.json, world);
  },
});

async function call(server: Server, method: "GET" | "POST" | "DELETE", query = ""): Promise<DrainView> {
  return (await (await askServer(server, `${path}${query}`, doing, { method })).json()) as DrainView;
}

/** Waits until the node is drained; if it was told to leave, until it is gone. */
async function followed(server: Server, begun: DrainView, json: boolean | undefined, world: World): Promise<0 | 1> {
  let last = begun;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
    try {
      last = await call(server, "GET");
    } catch (error) {
      // The node had said that it would leave. Any answer, also an error, means that it still runs.
      if (!last.leaves || !hasEnded(error)) throw error;
      world.progress("");
      world.out(json ? JSON.stringify({ ...last, state: "left" }) : "left: the node has ended");
      return 0;
    }
    world.progress(lineOf(last));
    if (last.state === "drained" && !last.leaves) {
      tell(last, json, world);
      return 0;
    }
    if (last.state === "serving") {
      world.note("drain: somebody has resumed it");
      return 1;
    }
  }
}

function tell(view: DrainView, json: boolean | undefined, { out }: World): void {
  out(json ? JSON.stringify(view) : lineOf(view));
}

function lineOf({ state, running, shards, forMs }: DrainView): string {
  const since = state === "serving" ? "" : `, for ${formatDuration(forMs)}`;
  return `${state}: ${running} running, ${shards} shards here${since}`;
}
