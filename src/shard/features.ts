/**
 * Feature levels. A node announces what it can read and write. The journal raises the cluster's level when every live
 * member supports it, never lowers it, and refuses a shard to a node that is behind. So a log contains a new feature
 * only from its level on, and an older program never meets it.
 */

/** What this program can read and write. */
export const featuresHere = 5;

/** Long texts in events and snapshots may be references into the store (ADR 0035). */
export const textReferences = 2;
