/** Puts long texts back into a shard's answers: only the shard's owner knows that they are stored separately. */
import type { ShardId } from "#base/ids.ts";
import type { Command } from "#kernel/model/command.ts";
import type { Grant, Signal } from "#kernel/model/model.ts";
import type { Replies } from "#kernel/model/reply.ts";
import { digestReferredTo } from "#kernel/model/text-reference.ts";
import type { LargeTexts } from "./large-texts.ts";
import type { CommandOutcome, ShardRequest, ShardResponse, WatchMessage } from "#shard/transport/protocol.ts";
import { mapAnswer, mapGrants, mapHeld, mapMessage } from "./text-fields.ts";

/** A claim that was granted, but whose input cannot be read. */
export type LostInput = {
  readonly executor: string;
  readonly task: number;
  readonly token: number;
  readonly why: unknown;
};

export class WholeTexts {
  readonly #texts: LargeTexts;
  readonly #lost: (shard: ShardId, lost: LostInput) => void;

  constructor(texts: LargeTexts, lost: (shard: ShardId, lost: LostInput) => void) {
    this.#texts = texts;
    this.#lost = lost;
  }

  /** Whether the answer may contain texts: most do not, and are not inspected. */
  mayHold(request: ShardRequest): boolean {
    if (request.kind === "query") return request.query?.kind === "job" || request.query?.kind === "plan-inputs";
    if (request.kind === "command") return mayBring(request.command);
    return request.kind === "commands" && Array.isArray(request.commands) && request.commands.some(mayBring);
  }

  response(request: ShardRequest, response: ShardResponse): ShardResponse | Promise<ShardResponse> {
    if (request.kind === "query" && response.kind === "answer") return this.#answer(request, response);
    if (request.kind === "command" && response.kind === "reply")
      return this.#said(request.shard, request.command, response);
    if (request.kind !== "commands" || response.kind !== "said") return response;
    const { commands, shard } = request;
    return this.#allSaid(shard, commands, response);
  }

  /** For a lost text the reference is shown. */
  async *messages(messages: AsyncIterable<WatchMessage>): AsyncGenerator<WatchMessage> {
    for await (const message of messages) {
      const { map } = await this.#texts.readAll((see) => void mapMessage(message, see));
      yield mapMessage(message, map);
    }
  }

  async #answer(
    { query }: Extract<ShardRequest, { kind: "query" }>,
    response: Extract<ShardResponse, { kind: "answer" }>,
  ): Promise<ShardResponse> {
    const { answer, stamp } = response;
    const { map, lost } = await this.#texts.readAll((see) => void mapAnswer(query, answer, see));
    // People may look at what is left of a job, but a planner must not plan on it.
    const [gone] = lost.keys();
    if (gone !== undefined && query.kind === "plan-inputs")
      return { kind: "rejected", stamp, rejection: { kind: "evidence-missing", digest: digestReferredTo(gone) ?? "" } };
    return { ...response, answer: mapAnswer(query, answer, map) };
  }

  async #allSaid(
    shard: ShardId,
    commands: readonly Command[],
    response: Extract<ShardResponse, { kind: "said" }>,
  ): Promise<ShardResponse> {
    const said: CommandOutcome[] = [];
    for (const [i, one] of response.said.entries()) said.push(await this.#said(shard, commands[i] as Command, one));
    return { ...response, said };
  }

  #said(shard: ShardId, command: Command, said: CommandOutcome): CommandOutcome | Promise<CommandOutcome> {
    if (said.kind !== "reply") return said;
    if (isRenew(command)) return this.#renewed(said);
    if (!isReserve(command)) return said;
    const { grants } = said.reply as Replies["reserve"];
    if (!grants.some(({ spec }) => digestReferredTo(spec) !== undefined)) return said;
    return this.#granted(shard, command.executor, grants).then((whole) => ({ ...said, reply: { grants: whole } }));
  }

  /** For a lost text the reference is sent. */
  #renewed(said: Extract<CommandOutcome, { kind: "reply" }>): CommandOutcome | Promise<CommandOutcome> {
    const reply = said.reply as Replies["renew"];
    const isKept = ({ payload }: Signal): boolean => digestReferredTo(payload) !== undefined;
    if (!reply.held.some(({ signals }) => signals?.some(isKept))) return said;
    return this.#texts
      .readAll((see) => void mapHeld(reply.held, see))
      .then(({ map }) => ({ ...said, reply: { ...reply, held: mapHeld(reply.held, map) } }));
  }

  async #granted(shard: ShardId, executor: string, grants: readonly Grant[]): Promise<readonly Grant[]> {
    const { map, lost } = await this.#texts.readAll((see) => void mapGrants(grants, see));
    for (const { spec, task, token } of grants)
      if (lost.has(spec)) this.#lost(shard, { executor, task, token, why: lost.get(spec) });
    return mapGrants(
      grants.filter(({ spec }) => !lost.has(spec)),
      map,
    );
  }
}

const isRenew = (command: Command): boolean => command?.kind === "renew";
const mayBring = (command: Command): boolean => isReserve(command) || isRenew(command);

const isReserve = (command: Command): command is Extract<Command, { kind: "reserve" }> => command?.kind === "reserve";
