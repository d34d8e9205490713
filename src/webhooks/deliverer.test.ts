import { deepEqual, equal, match, ok, throws } from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { Random } from "#base/random.ts";
import { watchedRecords } from "#records/watch.ts";
import { FeedRig, workOff, type FedNode } from "#feed/testing/feed-rig.ts";
import { WebhookDeliverer, type DelivererSettings } from "./deliverer.ts";
import { checkAddress, type Post, type Posted } from "./post.ts";
import { headersOf } from "./sign.ts";
import { filterOf, webhooksIn, type Wanted } from "./webhook.ts";

const secret = Buffer.from("a secret of sixteen");
const wanted: Wanted = { url: "https://hooks.example/x", kinds: ["job"], doors: [], tags: [], format: "millrace" };

type Got = { readonly id: string; readonly event: string; readonly ok: boolean };

/** A receiver that answers as the test says. */
class Receiver {
  readonly got: Got[] = [];
  answer: Posted = { status: 204, why: "" };
  readonly post: Post = async (_url, headers, body) => {
    const sum = createHmac("sha256", secret).update(body).digest("hex");
    equal(headers["x-hub-signature-256"], `sha256=${sum}`);
    const ok = this.answer.why === "";
    this.got.push({ id: headers["webhook-id"] ?? "", event: headers["x-millrace-event"] ?? "", ok });
    return this.answer;
  };

  get taken(): readonly string[] {
    return this.got.filter((each) => each.ok).map(({ event }) => event);
  }
}

async function lab() {
  const rig = new FeedRig();
  const a = await rig.fed("a");
  await a.serving();
  const records = webhooksIn(watchedRecords(rig.store.connect().records, rig.clock));
  const receiver = new Receiver();
  using reader = await a.feed.open(filterOf("t", wanted), "now");
  await records.progress.create("t", "chat", { cursor: reader.cursor });
  await records.hooks.create("t", "chat", { ...wanted, id: "w", by: "ada", createdAtMs: 0 });
  const deliver = (node: FedNode, name: string, settings: Partial<DelivererSettings> = {}) =>
    new WebhookDeliverer({
      records,
      vault: { read: async () => secret },
      feed: node.feed,
      clock: rig.clock,
      random: new Random(name),
      node: name,
      owns: () => node.node.state === "up",
      sending: () => ({}),
      render: async (_format, item) =>
        await Promise.resolve([{ event: `${item.kind}.${item.change}`, body: { item } }]),
      post: receiver.post,
      log: (line) => rig.reports.push(line),
      settings,
    });
  const until = async (isDone: () => boolean): Promise<void> => {
    for (let ms = 0; !isDone(); ms += 100) {
      if (ms > 120_000) throw new Error(`never: ${JSON.stringify(receiver.got)} ${rig.reports.join("\n")}`);
      await rig.clock.advance(100);
    }
  };
  return { rig, a, records, receiver, deliver, until };
}

const oneJob = ["job.submitted", "job.ended"];

describe("webhooks", () => {
  test("are delivered in order, and tried again with the same id until they are taken", async () => {
    const { a, receiver, deliver, until, records, rig } = await lab();
    const deliverer = deliver(a, "a");
    receiver.answer = { status: 500, why: "answered 500" };
    await workOff(a);
    await until(() => receiver.got.length >= 3);
    equal(new Set(receiver.got.map(({ id }) => id)).size, 1);
    match((await records.progress.read("t", "chat"))?.value.trouble?.why ?? "", /500/);
    receiver.answer = { status: 200, why: "" };
    await until(() => receiver.taken.length === 2);
    deepEqual(receiver.taken, oneJob);
    await rig.through(deliverer[Symbol.asyncDispose]());
  });

  test("that are never taken become dead letters, and the next ones follow", async () => {
    const { a, receiver, deliver, until, records, rig } = await lab();
    const deliverer = deliver(a, "a", { attemptsMax: 2, backoffMs: 10 });
    receiver.answer = { status: 0, why: "refused" };
    await workOff(a);
    await until(() => receiver.got.length >= 4);
    receiver.answer = { status: 200, why: "" };
    await workOff(a);
    await until(() => receiver.taken.length === 2);
    await rig.clock.advance(100);
    const { records: dead } = await records.dead.list({ tenant: "t", limit: 10 });
    deepEqual(
      new Set(dead.map(({ value }) => `${value.event} ${value.attempts} ${value.why}`)),
      new Set(["job.ended 2 refused", "job.submitted 2 refused"]),
    );
    await rig.through(deliverer[Symbol.asyncDispose]());
  });

  test("go on at another node when theirs dies: none is left out, and ids stay the same", async () => {
    const { rig, a, receiver, deliver, until } = await lab();
    deliver(a, "a");
    await workOff(a);
    await until(() => receiver.taken.length === 2);
    const b = await rig.fed("b");
    await rig.clock.advance(3_000);
    await workOff(a);
    rig.kill(a, "a");
    const deliverer = deliver(b, "b");
    await b.serving();
    await workOff(b);
    const distinct = (): number => new Set(receiver.got.map(({ id }) => id)).size;
    await until(() => distinct() === 6);
    const ids = new Map(receiver.got.map(({ id, event }) => [id, event]));
    deepEqual([...ids.values()], [...oneJob, ...oneJob, ...oneJob]);
    await rig.through(deliverer[Symbol.asyncDispose]());
  });

  test("that fail for long are disabled, with the reason", async () => {
    const { rig, a, receiver, deliver, until, records } = await lab();
    const deliverer = deliver(a, "a", { backoffMsMax: 2_000, disableAfterMs: 5_000 });
    receiver.answer = { status: 410, why: "answered 410" };
    await workOff(a);
    let why: string | undefined;
    await until(() => {
      void records.hooks.read("t", "chat").then((hook) => (why = hook?.value.disabled?.why));
      return why !== undefined;
    });
    match(why ?? "", /answered 410/);
    await rig.through(deliverer[Symbol.asyncDispose]());
  });

  test("are signed in both ways", () => {
    const delivery = { id: "1", event: "job.ended", body: "{}" };
    const headers = headersOf(delivery, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1_614_265_330_000);
    const key = Buffer.from("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "base64");
    const sum = createHmac("sha256", key).update("1.1614265330.{}").digest("base64");
    equal(headers["webhook-signature"], `v1,${sum}`);
    equal(headers["x-hub-signature-256"], `sha256=${createHmac("sha256", key).update("{}").digest("hex")}`);
  });

  test("are not sent into private networks, nor in the clear, unless the configuration says so", () => {
    const rules = { http: false, privateAddresses: false };
    for (const url of [
      "http://hooks.example/",
      "https://127.0.0.1/",
      "https://[::1]/",
      "https://169.254.169.254/latest",
      "https://10.1.2.3/",
      "https://localhost/",
      "https://u:p@hooks.example/",
      "ftp://hooks.example/",
      "nonsense",
    ])
      throws(
        () => checkAddress(url, rules),
        (error) => isFault(error, "invalid"),
        url,
      );
    ok(checkAddress("https://hooks.example/x", rules));
    ok(checkAddress("http://127.0.0.1:1/x", { http: true, privateAddresses: true }));
  });
});
