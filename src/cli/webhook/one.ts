/** Commands about webhooks that exist. */
import { command, serverFlags, type World } from "#door/command.ts";

const flags = { ...serverFlags, tenant: { type: "string", value: "NAME", about: "of this tenant" } } as const;

function named(command: string, [name]: readonly string[], world: Pick<World, "note">): string | undefined {
  if (name === undefined) world.note(`${command}: name the webhook, for example: millrace ${command} chat`);
  return name;
}

type Sent = { readonly status: number; readonly why: string };
const outcome = ({ status, why }: Sent): string => (why === "" ? `taken (${status})` : `not taken: ${why}`);

export const webhookList = command({
  name: "webhook list",
  about: "List webhooks, with what became of their last delivery.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags,
  examples: ["millrace webhook list"],
  async run({ values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { listWebhooks } = await import("#api/webhooks.ts");
    const { tableLines } = await import("#door/table.ts");
    const whose = values.tenant !== undefined && { tenant: values.tenant };
    const { items } = await apiOf(
      values,
      world.env,
      "list webhooks",
    )(listWebhooks, { query: { limit: 500 }, ...whose });
    const rows = items.map(({ name, url, delivered, dead, disabled, trouble }) => {
      const state = disabled ? "disabled" : trouble ? "failing" : "ok";
      return [name, state, String(delivered), String(dead), url];
    });
    const lines = values.json
      ? items.map((item) => JSON.stringify(item))
      : tableLines(["NAME", "STATE", "DELIVERED", "DEAD", "URL"], rows);
    const none = ["no webhooks; add one with: millrace webhook add"];
    for (const line of items.length === 0 && values.json !== true ? none : lines) world.out(line);
    return 0;
  },
});

export const webhookShow = command({
  name: "webhook show",
  about: "Show a webhook: what it sends, why it fails, and its dead letters.",
  words: "<name>",
  positionalsMax: 1,
  takesRest: false,
  flags,
  examples: ["millrace webhook show chat"],
  async run({ positionals, values }, world) {
    const name = named("webhook show", positionals, world);
    if (name === undefined) return 2;
    const { apiOf } = await import("#cli/api.ts");
    const { showWebhook } = await import("#api/webhooks.ts");
    const whose = values.tenant !== undefined && { tenant: values.tenant };
    const found = await apiOf(values, world.env, "show webhook")(showWebhook, { params: { name }, ...whose });
    const { url, kinds, doors, tags, format, delivered, dead, node, last, trouble, disabled, letters } = found;
    const only = [...kinds, ...doors.map((door) => `door ${door}`), ...tags].join(", ");
    const lines = [
      `${name} sends to ${url}`,
      `what: ${only}; format ${format}`,
      `delivered ${delivered}, given up ${dead}${node === "" ? "" : `, by ${node}`}`,
      ...(last ? [`last: ${last.at}, ${last.event}, status ${last.status}`] : []),
      ...(trouble ? [`trouble: ${trouble.at}, ${trouble.why}`] : []),
      ...(disabled ? [`disabled: ${disabled.at}, ${disabled.why}; add it again to enable it`] : []),
      ...letters.map((each) => `dead: ${each.delivery} ${each.event} ${each.at} after ${each.attempts}: ${each.why}`),
    ];
    for (const line of values.json ? [JSON.stringify(found)] : lines) world.out(line);
    return 0;
  },
});

export const webhookDelete = command({
  name: "webhook delete",
  about: "Delete a webhook, its secret and its dead letters.",
  words: "<name>",
  positionalsMax: 1,
  takesRest: false,
  flags,
  examples: ["millrace webhook delete chat"],
  async run({ positionals, values }, world) {
    const name = named("webhook delete", positionals, world);
    if (name === undefined) return 2;
    const { apiOf } = await import("#cli/api.ts");
    const { removeWebhook } = await import("#api/webhooks.ts");
    const whose = values.tenant !== undefined && { tenant: values.tenant };
    await apiOf(values, world.env, "delete webhook")(removeWebhook, { params: { name }, ...whose });
    world.out(values.json ? JSON.stringify({ name, deleted: true }) : `${name} deleted`);
    return 0;
  },
});

export const webhookTest = command({
  name: "webhook test",
  about: "Send an event `ping` to a webhook now, once.",
  words: "<name>",
  positionalsMax: 1,
  takesRest: false,
  flags,
  examples: ["millrace webhook test chat"],
  async run({ positionals, values }, world) {
    const name = named("webhook test", positionals, world);
    if (name === undefined) return 2;
    const { apiOf } = await import("#cli/api.ts");
    const { testWebhook } = await import("#api/webhooks.ts");
    const whose = values.tenant !== undefined && { tenant: values.tenant };
    const sent = await apiOf(values, world.env, "test webhook")(testWebhook, { params: { name }, ...whose });
    world.out(values.json ? JSON.stringify({ name, ...sent }) : outcome(sent));
    return sent.why === "" ? 0 : 1;
  },
});

export const webhookRedeliver = command({
  name: "webhook redeliver",
  about: "Send dead letters of a webhook again: the named one, or the first fifty.",
  words: "<name> [delivery]",
  positionalsMax: 2,
  takesRest: false,
  flags,
  examples: ["millrace webhook redeliver chat"],
  async run({ positionals, values }, world) {
    const name = named("webhook redeliver", positionals, world);
    if (name === undefined) return 2;
    const [, delivery] = positionals;
    const { apiOf } = await import("#cli/api.ts");
    const { redeliverWebhook } = await import("#api/webhooks.ts");
    const { items } = await apiOf(
      values,
      world.env,
      "redeliver",
    )(redeliverWebhook, {
      params: { name },
      body: { ...(delivery !== undefined && { delivery }) },
      ...(values.tenant !== undefined && { tenant: values.tenant }),
    });
    for (const item of items) world.out(values.json ? JSON.stringify(item) : `${item.delivery} ${outcome(item)}`);
    if (items.length === 0 && values.json !== true) world.out("there are no dead letters");
    return items.every(({ why }) => why === "") ? 0 : 1;
  },
});
