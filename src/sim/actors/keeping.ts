/** Nothing acknowledged is lost (K7), even after it left memory and log: history and archive must have it. */
import { decodeLines } from "#shard/codec/segment.ts";
import type { Cluster } from "#sim/world/cluster.ts";
import { isOver } from "#sim/model/model.ts";

export async function notKept(cluster: Cluster): Promise<string | undefined> {
  const journal = cluster.database.store.connect();
  for (const { shard, jobs } of cluster.court.models) {
    for (const job of jobs.values()) {
      if (!job.forgotten) continue;
      const kept = await journal.history.job(shard, job.no);
      const what = `shard ${shard} job ${job.no}, which has left memory,`;
      if (!isOver(job.phase)) return `${what} had not ended`;
      if (kept?.job.phase !== job.phase)
        return `${what} is ${kept?.job.phase ?? "unknown"} in the history, not ${job.phase}`;
    }
    const gap = await archiveGap(cluster, shard);
    if (gap !== undefined) return gap;
  }
  return undefined;
}

/** Everything that was trimmed from the log is in the archive, in order, and can be read. */
async function archiveGap(cluster: Cluster, shard: number): Promise<string | undefined> {
  const journal = cluster.database.store.connect();
  let next = 1;
  for (const segment of await journal.segments(shard)) {
    const { fromSeq, throughSeq, digest } = segment;
    if (fromSeq !== next) return `shard ${shard}: a segment of the archive begins at ${fromSeq}, not at ${next}`;
    const seqs = Array.from(decodeLines(await cluster.pins.read(digest), segment), ({ seq }) => seq);
    if (seqs.length !== throughSeq - fromSeq + 1 || seqs[0] !== fromSeq || seqs.at(-1) !== throughSeq)
      return `shard ${shard}: segment ${fromSeq} to ${throughSeq} holds ${seqs[0]} to ${seqs.at(-1)}`;
    next = throughSeq + 1;
  }
  return undefined;
}
