/**
 * The kernel's door: one pure state machine for one shard.
 *
 * `step` decides a command against the state, applies the events and hands them back to be made durable. It never
 * throws for what a caller sent (K12: a command that makes deciding throw is refused alone). If applying throws, our
 * own code is wrong: the state must be dropped and rebuilt from the log.
 */
export type { State } from "./state.ts";
