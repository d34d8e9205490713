/** The job of a schedule's instant. */
import type { Door } from "#door/door.ts";
import type { Wanted } from "#schedules/schedule.ts";
import type { Order } from "#shard/client/client.ts";
import { planJob } from "#app/job-order.ts";

type Scheduled = {
  readonly tenant: string;
  readonly name: string;
  readonly value: Pick<Wanted, "door" | "command" | "document" | "priority">;
};

/** `key` names the instant: the same one never makes a second job, and leads to the same shard. */
export function scheduledOrder({ tenant, name, value }: Scheduled, key: string, doors: readonly Door[]): Order {
  const { door, command, document = "", priority } = value;
  const request = command ? { command } : { document };
  const plan = (): Order => planJob(request, { tenant, name, priority, key, unique: key }, door, doors);
  const order = plan();
  // A key is known to one shard only: a door that spreads its jobs at random would find none of them again.
  const shardKey = plan().shardKey === order.shardKey ? order.shardKey : key;
  return { ...order, shardKey, requestKey: key };
}
