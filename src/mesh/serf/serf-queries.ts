/**
 * Answers the queries that serf's commands send to every member: `serf reachability` wants an acknowledgement, `serf
 * keys` installs, uses, removes and lists keys and counts the answers. Other queries are ignored. A filter by tags is
 * someone else's regular expression, which is not run here, so such a query is ignored too.
 */
import { isFault } from "#base/fault.ts";
import type { Address } from "#mesh/address.ts";
import { Fields } from "#mesh/wire/fields.ts";
import type { Keyring } from "#mesh/wire/keyring.ts";
import { framed } from "#mesh/wire/messages.ts";
import { MsgpackReader, textOf, whole, type Packed } from "#mesh/wire/msgpack-reader.ts";
import { lamportIn, readFields, serfCode } from "./serf-messages.ts";

const flagAck = 1;
const filterByNode = 0;
const payloadBytesMax = 2_048;

export type SerfAnswer = { readonly to: Address; readonly message: Uint8Array };

export function answersTo(query: Fields, name: string, keyring: Keyring): readonly SerfAnswer[] {
  const to = query.optionalAddress("Addr", "Port");
  if (!to || !isForUs(query.value("Filters"), name)) return [];
  const answer = (flags: number, payload: Uint8Array | null): SerfAnswer => ({
    to,
    message: framed(serfCode.queryResponse, {
      Flags: flags,
      From: name,
      ID: query.uint32("ID"),
      LTime: lamportIn(query, "LTime"),
      Payload: payload,
    }),
  });
  const answers = (query.uint32("Flags") & flagAck) === 0 ? [] : [answer(flagAck, null)];
  const outcome = aboutKeys(query.text("Name"), query.bytes("Payload", payloadBytesMax), keyring);
  return outcome ? [...answers, answer(0, outcome)] : answers;
}

function isForUs(filters: Packed, name: string): boolean {
  if (filters === null) return true;
  if (!Array.isArray(filters)) return false;
  return (filters as readonly Packed[]).every((filter) => {
    if (!(filter instanceof Uint8Array) || filter[0] !== filterByNode) return false;
    const names = whole(() => new MsgpackReader(filter, 1).value());
    return Array.isArray(names) && names.some((other) => other instanceof Uint8Array && textOf(other) === name);
  });
}

function aboutKeys(query: string, payload: Uint8Array, keyring: Keyring): Uint8Array | undefined {
  const change = changes[query];
  if (!change && query !== "_serf_list-keys") return undefined;
  if (keyring.isEmpty) return outcomeOf(false, "this member has no keys: it was started without", keyring);
  if (!change) return outcomeOf(true, "", keyring);
  try {
    const request = new Fields(readFields(payload));
    change(keyring, request.bytes("Key", 32));
    return outcomeOf(true, "", undefined);
  } catch (error) {
    if (!isFault(error)) throw error;
    return outcomeOf(false, error.message, undefined);
  }
}

const changes: Readonly<Record<string, (keyring: Keyring, key: Uint8Array) => void>> = {
  "_serf_install-key": (keyring, key) => keyring.install(key),
  "_serf_use-key": (keyring, key) => keyring.use(key),
  "_serf_remove-key": (keyring, key) => keyring.remove(key),
};

function outcomeOf(result: boolean, message: string, listed: Keyring | undefined): Uint8Array {
  const base64 = (key: Uint8Array): string => Buffer.from(key).toString("base64");
  return framed(serfCode.keyResponse, {
    Keys: listed ? listed.keys.map(base64) : null,
    Message: message,
    PrimaryKey: listed?.primary ? base64(listed.primary) : "",
    Result: result,
  });
}
