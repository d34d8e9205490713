/** docs/reference/limits.md: what callers can create many of in a node's memory, and what stops them. */
import { formatDuration, formatSize } from "#base/units.ts";
import { h2LimitsDefault } from "#h2/connection/limits.ts";
import { defaultLimits } from "#kernel/model/limits.ts";
import { defaultHostSettings } from "#shard/host/settings.ts";
import { defaultProjectorSettings } from "#shard/history/projector.ts";

type Row = readonly [what: string, limit: string, per: string, atTheLimit: string];

const count = (value: number): string => value.toLocaleString("en-US");
const full = (what: string): string => `RESOURCE_EXHAUSTED \`shard-full\` (${what}), with a time to try again`;
const refused = "INVALID_ARGUMENT `limit`, which names the limit";
const busy = "UNAVAILABLE `overloaded`, with a time to try again";
const asMuch = "as much as is left for all other tenants";

const k = defaultLimits;
const h = defaultHostSettings;

const work: readonly Row[] = [
  ["memory of work", "`node.workMemoryMax`: two fifths of the heap, less 64MiB", "node", full("memory")],
  ["memory of work", `\`cluster.tenantMemoryMax\`, or ${asMuch}`, "tenant and node", full("memory for tenant")],
  [
    "memory of work",
    "a quarter of `node.workMemoryMax`, twice that with its results",
    "job",
    `${refused}; a job that outgrows it with its results fails`,
  ],
  [
    "results and plans of work that was taken in",
    "half as much again as `node.workMemoryMax`",
    "node",
    `${full("memory")}; results below 1KiB are always taken`,
  ],
  [
    "tasks that wait",
    `\`cluster.queuedMax\`: ${count(k.queuedMax)}; \`millrace tenant set --queued\``,
    "tenant and shard",
    "RESOURCE_EXHAUSTED `queue-full`, with a time to try again",
  ],
  ["tasks", `\`cluster.tasksMax\`: ${count(k.tasksMax)}`, "shard", full("tasks")],
  ["jobs", count(k.jobsMax), "shard", full("jobs")],
  ["stages", count(k.stagesMax), "job", refused],
  ["tasks", count(k.tasksPerStageMax), "stage", refused],
  [
    "a spec, or a signal's payload",
    `${formatSize(k.specBytesMax)}; above 8KiB it is kept in the store, and a sixteenth of it counts as memory`,
    "text",
    refused,
  ],
  ["a result's payload", formatSize(k.resultBytesMax), "result", refused],
  ["digests", count(k.digestsMax), "result", refused],
  ["why something failed", formatSize(k.messageLengthMax), "message", "it is truncated"],
  ["why something is to stop", formatSize(k.messageLengthMax), "reason", refused],
  ["signals", count(k.signalsPerStageMax), "stage", refused],
  ["subscribers of a job that is shared", count(k.subscribersMax), "job", refused],
  ["steps that are reported", `${count(k.stepsPerTaskMax)}, ${count(k.stepsMax)} at once`, "task", refused],
  ["locks, merge keys", "they count as memory of their job", "job", full("memory")],
  [
    "tags",
    `${count(k.tagsMax)}, of ${count(k.tagNameLengthMax)} and ${count(k.tagValueLengthMax)} characters`,
    "job",
    refused,
  ],
  ["who is told of its end", count(k.noticesMax), "job", refused],
  ["series", count(k.seriesMax), "tenant and shard", refused],
  ["names, keys", `${count(k.nameLengthMax)} characters`, "name", refused],
  [
    "request keys in memory",
    `an eighth of \`node.workMemoryMax\`, divided by the shards, and ${count(k.keysInMemoryMax)}`,
    "shard",
    "the oldest leave memory; the journal answers for them",
  ],
  [
    "labels, hints, signals that are waited for",
    `${k.labelsMax} of ${count(k.nameLengthMax)} characters, ${formatSize(k.labelsLengthMax)} together`,
    "list",
    refused,
  ],
  [
    "different sets of labels with work that waits",
    `${count(k.classesMax)}; a tenant has ${asMuch}`,
    "shard",
    full("requirement classes"),
  ],
  ["tenants", `${count(k.tenantsMax)}; one without jobs and settings is forgotten`, "shard", full("tenants")],
  ["output of a task", "`worker.printedMax`: 256MiB", "stream", "the middle is left out, and a line says how much"],
  [
    "output of running tasks",
    "`cluster.tenantOutputMax`: 8GiB",
    "tenant",
    "the log ends with a line that says so; the task goes on",
  ],
  ["results that wait to be published", count(k.unpublishedMax), "shard", full("unpublished results")],
  ["rows that wait to be written to the history", count(defaultProjectorSettings.lagRowsMax), "shard", full("history")],
];

const requestLimits: readonly Row[] = [
  [
    "executors",
    `${count(k.executorsMax)}; ${count(k.executorsAlways)} also when memory is full; gone after ${formatDuration(k.executorFadeMs)} of silence`,
    "shard",
    full("executors"),
  ],
  ["executors that wait for work", count(h.waitersMax), "shard", `${busy}; they ask again`],
  ["what they weigh", `a 32nd of the heap, at most ${formatSize(h.heldBytesMax)}`, "node", `${busy}; they ask again`],
  ["the same request, held", "16", "request", busy],
  [
    "requests under way",
    `${count(h.requestsMax)} and a 32nd of the heap, at most ${formatSize(h.requestBytesMax)}`,
    "shard",
    busy,
  ],
  [
    "requests under way",
    `${count(h.nodeRequestsMax)} and a 16th of the heap, at most ${formatSize(h.nodeRequestBytesMax)}`,
    "node",
    busy,
  ],
  [
    "watches",
    `${count(h.watchersMax)}; a tenant has ${asMuch}`,
    "shard",
    "the watch ends with `moved`; it may be tried again",
  ],
  [
    "messages that a watcher leaves unread",
    `${count(h.unreadMax)} and ${formatSize(h.unreadBytesMax)}`,
    "watch",
    "they are dropped, and a snapshot follows",
  ],
  [
    "what all watchers leave unread",
    `a 32nd of the heap, at most ${formatSize(h.nodeUnreadBytesMax)}`,
    "node",
    "they are dropped, and a snapshot follows",
  ],
  [
    "recent events for watches that come back",
    `a 32nd of the heap divided by the shards, at most ${formatSize(h.ringBytesMax)}`,
    "shard",
    "a watch that comes back later begins with a snapshot",
  ],
  ["a message", "4MiB", "message", "RESOURCE_EXHAUSTED when its length is read"],
  [
    "messages that are still coming in",
    "an eighth of the heap, at most 512MiB; a connection has as much as is left for others; 2m each",
    "node",
    "UNAVAILABLE, or DEADLINE_EXCEEDED after the time",
  ],
  ["connections", "10,000", "port", "closed at once"],
  ["calls at once", `\`edge.limits.streamsMax\`: ${h2LimitsDefault.streamsMax}`, "connection", "the stream is refused"],
  [
    "bytes that were sent and not read",
    `\`edge.limits.connectionWindowMax\`: ${formatSize(h2LimitsDefault.connectionWindowBytesMax)}`,
    "connection",
    "the sender has to wait",
  ],
];

const table = (rows: readonly Row[]): readonly string[] => [
  "| What | Limit | Per | At the limit |",
  "|---|---|---|---|",
  ...rows.map((row) => `| ${row.join(" | ")} |`),
];

export const limitsReference = (): string =>
  [
    "# Limits",
    "",
    "<!-- Written by src/app/config/limits-reference.ts from the limits themselves; change those, not this page. -->",
    "",
    "What callers can make many of in a node's memory, how many there may be, and what happens then. Numbers are the",
    "defaults. The heap is what the node's process may have: V8's limit (`--max-old-space-size`), or three quarters of",
    "the memory of its container where that is less. What is full shows in the log, in `millrace_work_refused_total`",
    "and `millrace_work_memory_bytes` at /metrics, and in `millrace shards`.",
    "",
    "## Work",
    "",
    ...table(work),
    "",
    "## Calls",
    "",
    ...table(requestLimits),
    "",
  ].join("\n");
