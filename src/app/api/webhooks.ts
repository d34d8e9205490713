/** Serves /v1/webhooks. */
import { randomBytes, randomUUID } from "node:crypto";
import { listWebhooks, redeliverWebhook, removeWebhook, setWebhook, showWebhook, testWebhook } from "#api/webhooks.ts";
import type { Clock } from "#base/clock.ts";
import type { Feed } from "#feed/feed.ts";
import { Problem } from "#http/problem.ts";
import { route, type Route } from "#http/route.ts";
import type { Typed } from "#records/typed.ts";
import type { Vault } from "#vault/vault.ts";
import { checkAddress, type Post, type Posted, type PostRules } from "#webhooks/post.ts";
import { requestOf, type Delivery, type Sending } from "#webhooks/sign.ts";
import { filterOf, secretName, type Progress, type Webhook, type WebhookRecords } from "#webhooks/webhook.ts";

export type WebhooksPorts = {
  readonly records: WebhookRecords;
  readonly vault: Vault;
  readonly feed: Feed;
  readonly clock: Clock;
  readonly post: Post;
  readonly rules: PostRules;
  /** Of doors that make payloads of their own events. */
  readonly formats: ReadonlyMap<string, Sending>;
};

const lettersShown = 50;

export function webhooksRoutes(ports: WebhooksPorts): readonly Route[] {
  const { records, vault } = ports;
  const find = async (tenant: string, name: string): Promise<Typed<Webhook>> => {
    const found = await records.hooks.read(tenant, name);
    if (!found) throw new Problem(404, "name: there is no such webhook; list them with GET /v1/webhooks");
    return found;
  };
  const lettersOf = async (tenant: string, name: string) =>
    (await records.dead.list({ tenant, prefix: `${name}/`, limit: lettersShown })).records;
  return [
    setRoute(ports),
    route(listWebhooks, async ({ tenant, query: { limit, cursor } }) => {
      const page = await records.hooks.list({ tenant, limit, cursor });
      const items = [];
      for (const hook of page.records) items.push(shown(hook, await records.progress.read(tenant, hook.name)));
      return { body: { items, ...(page.cursor !== undefined && { next: page.cursor }) } };
    }),
    route(showWebhook, async ({ tenant, params: { name } }) => {
      const hook = await find(tenant, name);
      const letters = (await lettersOf(tenant, name)).map(({ name: id, value: { event, atMs, attempts, why } }) => ({
        delivery: id.slice(name.length + 1),
        event,
        at: time(atMs),
        attempts,
        why,
      }));
      return { body: { ...shown(hook, await records.progress.read(tenant, name)), letters } };
    }),
    route(removeWebhook, async ({ tenant, params: { name } }) => {
      if (!(await records.hooks.remove(tenant, name))) await find(tenant, name);
      await records.progress.remove(tenant, name);
      await vault.remove(tenant, secretName(name));
      for (let left = await lettersOf(tenant, name); left.length > 0; left = await lettersOf(tenant, name))
        for (const letter of left) await records.dead.remove(tenant, letter.name);
      return undefined;
    }),
    route(testWebhook, async ({ tenant, params: { name }, signal }) => {
      const hook = await find(tenant, name);
      if (ports.formats.get(hook.value.format)?.headers)
        throw new Problem(409, "a webhook of this format sends statuses of commits only: start a run");
      const body = JSON.stringify({ event: "ping", webhook: name, zen: "One stream turns every wheel." });
      return { body: await send(ports, hook, { id: randomUUID(), event: "ping", body }, signal) };
    }),
    route(redeliverWebhook, async ({ tenant, params: { name }, body: { delivery }, signal }) => {
      const hook = await find(tenant, name);
      const one = delivery === undefined ? undefined : await records.dead.read(tenant, `${name}/${delivery}`);
      if (delivery !== undefined && !one) throw new Problem(404, "delivery: there is no such dead letter");
      const items = [];
      for (const letter of one ? [one] : await lettersOf(tenant, name)) {
        const id = letter.name.slice(name.length + 1);
        const { event, body, path } = letter.value;
        const sent = await send(ports, hook, { id, event, body, path }, signal);
        if (sent.why === "") await records.dead.remove(tenant, letter.name);
        items.push({ delivery: id, ...sent });
      }
      return { body: { items } };
    }),
  ];
}

const setRoute = ({ records, vault, feed, clock, rules, formats }: WebhooksPorts): Route =>
  route(setWebhook, async ({ tenant, params: { name }, body: { secret, ...wanted }, caller }) => {
    checkAddress(wanted.url, rules);
    const format = formats.get(wanted.format);
    if (wanted.format !== "millrace" && !format)
      throw new Problem(400, `body.format: ${["millrace", ...formats.keys()].join(" or ")}`);
    const before = await records.hooks.read(tenant, name);
    const isSame = before?.value.url === wanted.url && before.value.format === wanted.format;
    // a token goes to no other address than the one that it was given for
    if (secret === undefined && (format?.headers || tokenOf(formats, before)) && !isSame)
      throw new Problem(400, "body.secret: give the token of the forge with which statuses are set");
    const by = caller.principal.name;
    const isNew = (await vault.read(tenant, secretName(name))) === undefined;
    const made = secret === undefined && isNew ? `whsec_${randomBytes(32).toString("base64")}` : undefined;
    const set = secret ?? made;
    if (set !== undefined) await vault.set(tenant, secretName(name), set, by);
    const value = { ...wanted, id: randomUUID(), by, createdAtMs: clock.wallMs() };
    // Its cursor is where the feed is now, and is there before the webhook: nothing in between is missed.
    using reader = await feed.open(filterOf(tenant, value), "now");
    await records.progress.create(tenant, name, { cursor: reader.cursor });
    const { created, record } = await records.hooks.create(tenant, name, value);
    const hook = created ? record : await records.hooks.update(tenant, name, ({ id }) => ({ ...value, id }));
    const progress = await records.progress.read(tenant, name);
    return { body: { ...shown(hook ?? record, progress), ...(made !== undefined && { secret: made }) } };
  });

const tokenOf = (formats: WebhooksPorts["formats"], hook: Typed<Webhook> | undefined): boolean =>
  hook !== undefined && formats.get(hook.value.format)?.headers !== undefined;

async function send(
  { vault, clock, post, formats }: WebhooksPorts,
  { tenant, name, value }: Typed<Webhook>,
  delivery: Delivery,
  signal: AbortSignal,
): Promise<Posted> {
  const secret = await vault.read(tenant, secretName(name));
  if (!secret) throw new Problem(409, "the webhook's secret is gone: set the webhook again");
  const { url, headers } = requestOf(value.url, delivery, secret, formats.get(value.format) ?? {}, clock.wallMs());
  return await post(url, headers, delivery.body, signal);
}

const time = (ms: number): string => new Date(ms).toISOString();

function shown({ name, value }: Typed<Webhook>, progress: Typed<Progress> | undefined) {
  const { id: _id, createdAtMs: _created, disabled, ...rest } = value;
  const { delivered = 0, dead = 0, node = "", last, trouble } = progress?.value ?? {};
  return {
    name,
    ...rest,
    ...(disabled && { disabled: { at: time(disabled.atMs), why: disabled.why } }),
    delivered,
    dead,
    node,
    ...(last && { last: { at: time(last.atMs), status: last.status, event: last.event } }),
    ...(trouble && { trouble: { at: time(trouble.atMs), why: trouble.why } }),
  };
}
