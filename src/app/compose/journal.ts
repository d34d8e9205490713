/** The journal that the configuration names, and the checks that a node of its cluster must pass. */
import { must } from "#base/assert.ts";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { Cluster, Journal } from "#journal/journal.ts";
import { partitionedJournal } from "#journal/partitioned.ts";
import type { Node } from "#shard/node.ts";
import { serversOf, type Config } from "#app/config/config.ts";
import type { DataFolder } from "#app/node/data-folder.ts";
import { checkJournalIsThere, markJournal } from "#app/node/journal-mark.ts";
import { checkAlone, whyAlone } from "#app/config/join-check.ts";

/** The journal's settings count: they were fixed when it was created. */
export function checkCluster({ cluster: wanted }: Config, found: Cluster, log: (line: string) => void): void {
  if (found.clusterId !== wanted.name)
    throw new Fault("invalid", "join cluster", {
      configured: wanted.name,
      found: found.clusterId,
      why: "the journal belongs to a cluster of another name",
    });
  if (wanted.shards !== undefined && found.shards !== wanted.shards)
    log(`the journal was created with ${found.shards} shards; cluster.shards: ${wanted.shards} has no effect`);
}

/** Imported on demand: an unused database driver is not loaded. */
export async function openJournal({ journal }: Config, folder: DataFolder, clock: Clock): Promise<Journal> {
  switch (journal.kind) {
    case "sqlite": {
      const directory = journal.directory ?? folder.journal;
      checkJournalIsThere(folder, directory);
      return (await import("#journal/sqlite/sqlite.ts")).sqliteJournal({ directory });
    }
    case "postgres": {
      const { postgresJournal } = await import("#journal/postgres/postgres.ts");
      const databases = serversOf(journal).map((server) => postgresJournal(server));
      return databases.length > 1 ? partitionedJournal({ databases, clock }) : must(databases[0], "a database");
    }
    case "memory":
      return (await import("#journal/memory/memory.ts")).memoryStore(() => clock.wallMs()).connect();
    default:
      return journal satisfies never;
  }
}

type JournalParts = {
  readonly config: Config;
  readonly folder: DataFolder;
  readonly name: string;
  readonly journal: Journal;
  readonly log: (line: string) => void;
};

/** Opens it, new if need be. A node that must be alone finds out before it joins: others would miss its data. */
export async function prepareJournal({ config, folder, name, journal, log }: JournalParts, node: Node): Promise<void> {
  checkCluster(config, await node.open(), log);
  if (config.journal.kind === "sqlite") {
    markJournal(folder);
    await journal.records.list({ kind: "any", limit: 1 }); // lost records are told now, and not when one is wanted
  }
  const why = whyAlone(config);
  if (why === undefined) return;
  checkAlone(why, name, await journal.nodes());
  log(`this node must stay the only one of its journal: ${why}`);
}
