import { formatTask } from "#base/ids.ts";
import type { Publisher } from "#shard/outbox/outbox.ts";

/** By door. */
export type Publishers = Readonly<Record<string, Publisher>>;

/**
 * Each result is published by its job's door. If that door publishes nothing, this is logged, and the publication is
 * done.
 */
export const publisherOf =
  (of: () => Publishers, log: (line: string) => void): Publisher =>
  async (publication, signal) => {
    const { door, shard, task } = publication;
    const publishers = of();
    const publisher = Object.hasOwn(publishers, door) ? publishers[door] : undefined;
    if (publisher) return publisher(publication, signal);
    log(
      `${formatTask(shard, task)}: the door ${JSON.stringify(door)} publishes nothing, although the result asks for it`,
    );
    return "done";
  };
