import { command, serverFlags } from "#door/command.ts";

const kinds = ["job", "stage", "task", "step"] as const;

export const webhookAdd = command({
  name: "webhook add",
  about: "Send events to an address from now on; a webhook of that name is replaced and enabled.",
  words: "<name> <url>",
  positionalsMax: 2,
  takesRest: false,
  flags: {
    ...serverFlags,
    kind: { type: "strings", value: "KIND", about: `which events: ${kinds.join(", ")} (job)` },
    door: { type: "strings", value: "NAME", about: "only of this door; several: any of them" },
    tag: { type: "strings", value: "NAME=VALUE", about: "only of jobs with this tag; several: with all of them" },
    format: { type: "string", value: "NAME", about: "millrace, or one of a door: ci, ci:github, ci:gitea, ci:gitlab" },
    "secret-file": {
      type: "string",
      value: "FILE",
      about: "what signs deliveries; left out: one is made and shown once",
    },
    tenant: { type: "string", value: "NAME", about: "of this tenant" },
  },
  examples: [
    "millrace webhook add chat https://chat.example/hooks/1 --door ci",
    "millrace webhook add forge https://forge.example/events --format ci --kind job --kind task",
  ],
  async run({ positionals: [name, url], values }, world) {
    const wrong = values.kind?.find((kind) => !(kinds as readonly string[]).includes(kind));
    if (name === undefined || url === undefined || wrong !== undefined) {
      world.note(`webhook add: give a name and an https URL; --kind is one of ${kinds.join(", ")}`);
      return 2;
    }
    const { apiOf } = await import("#cli/api.ts");
    const { setWebhook } = await import("#api/webhooks.ts");
    const { readFile } = await import("node:fs/promises");
    const { tenant, kind, door, tag, format } = values;
    const file = values["secret-file"];
    const secret = file === undefined ? undefined : (await readFile(file, "utf8")).trim();
    const set = await apiOf(
      values,
      world.env,
      "add webhook",
    )(setWebhook, {
      params: { name },
      body: {
        url,
        ...(kind && { kinds: kind as (typeof kinds)[number][] }),
        ...(door && { doors: [...door] }),
        ...(tag && { tags: [...tag] }),
        ...(format !== undefined && { format }),
        ...(secret !== undefined && { secret }),
      },
      ...(tenant !== undefined && { tenant }),
    });
    if (values.json) world.out(JSON.stringify(set));
    else {
      world.out(`${set.name} sends to ${set.url}`);
      if (set.secret !== undefined) world.out(`secret: ${set.secret} (shown this once)`);
      world.note(`try it: millrace webhook test ${set.name}`);
    }
    return 0;
  },
});
