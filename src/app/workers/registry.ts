/**
 * Workers that registered themselves with a token: what they may do comes from the token, never from what they say.
 *
 * WR1 A token registers as many instances as it says, until its time, unless it is revoked. One that asks again is the
 *     same worker, so an answer that was lost costs nothing; one that was removed, or was for one task, is refused.
 * WR2 Tenant, pools and labels of a worker are those of its token.
 * WR3 A worker that was removed is refused by every node, as soon as a node asks (grant-token.ts).
 */
import { hash } from "node:crypto";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import type { Principal } from "#access/principal.ts";
import { Problem } from "#http/problem.ts";
import { issueGrant } from "#issuer/grant-token.ts";
import type { Issuer } from "#issuer/issuer.ts";
import { recordsOf, type Typed } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { isSecret, newRegistration, readRegistration, registrationText, secretHash } from "./registration-token.ts";
import { versionProblem } from "./version-floor.ts";

const granted = {
  name: z.string(),
  pools: z.array(z.string()),
  labels: z.array(z.string()),
  isEphemeral: z.boolean(),
};
const Registration = z.object({
  ...granted,
  sha256: z.string(),
  by: z.string(),
  untilMs: z.number(),
  uses: z.int(),
  /** The workers that it registered. */
  used: z.array(z.string()),
});
const Member = z.object({
  ...granted,
  registration: z.string(),
  version: z.string(),
  slots: z.int(),
  registeredAtMs: z.number(),
  seenAtMs: z.number(),
});

export type WorkerAbout = { readonly version: string; readonly slots: number };
export type NewToken = z.output<z.ZodObject<typeof granted>> & { readonly uses: number; readonly ttlMs: number };
type Kept<T> = Typed<T>;
export type MemberRecord = Kept<z.output<typeof Member>>;
export type RegistrationRecord = Kept<z.output<typeof Registration>>;

const credentialMs = 3_600_000;
const renewMs = 300_000;
const forgetEveryMs = 60_000;
/** A worker that was not seen for so long is forgotten: it would have to register again anyway. */
const forgottenMs = 7 * 86_400_000;

export type RegistryPorts = {
  readonly records: Records;
  readonly issuer: Issuer;
  readonly clock: Pick<Clock, "wallMs">;
  readonly versionMin: string | undefined;
};

export class WorkerRegistry {
  readonly #ports: RegistryPorts;
  /** By tenant: when old records were removed. */
  readonly #forgotMs = new Map<string, number>();
  readonly registrations;
  readonly members;

  constructor(ports: RegistryPorts) {
    this.#ports = ports;
    this.registrations = recordsOf(ports.records, { kind: "worker.registration", schema: Registration });
    this.members = recordsOf(ports.records, { kind: "worker.member", schema: Member });
  }

  async makeToken(tenant: string, by: string, { uses, ttlMs, ...given }: NewToken) {
    const nowMs = this.#ports.clock.wallMs();
    if (nowMs - (this.#forgotMs.get(tenant) ?? 0) >= forgetEveryMs) {
      this.#forgotMs.set(tenant, nowMs);
      await this.#forget(tenant, nowMs);
    }
    const made = newRegistration(tenant);
    const sha256 = secretHash(made.secret);
    // What a machine is follows from the machine.
    const labels = [...new Set(["os=*", "arch=*", ...given.labels])];
    const value = { ...given, labels, sha256, by, untilMs: nowMs + ttlMs, uses, used: [] };
    const { record } = await this.registrations.create(tenant, made.id, value);
    return { record, token: registrationText(made) };
  }

  /** WR1 */
  async register(text: string, instance: string, about: WorkerAbout) {
    const token = readRegistration(text);
    const nowMs = this.#ports.clock.wallMs();
    const found = token && (await this.registrations.read(token.tenant, token.id));
    // The same for a token that was revoked, has another secret, or never was.
    if (!found || !isSecret(token.secret, found.value.sha256)) throw refused("the token is not known here");
    if (found.value.untilMs <= nowMs) throw refused("the token has expired");
    const tooOld = versionProblem(about.version, this.#ports.versionMin);
    if (tooOld !== undefined) throw new Problem(409, tooOld);
    const id = `w-${hash("sha256", `${found.name} ${instance}`).slice(0, 12)}`;
    const { tenant } = token;
    const { value, name: registration } = found;
    const { name, pools, labels, isEphemeral } = value;
    const before = await this.members.read(tenant, id);
    if (value.used.includes(id) && (!before || isEphemeral))
      throw refused(isEphemeral ? "the worker has run its task: register another" : "the worker was removed");
    // First the worker, then the use: a worker that is used and not there was removed.
    const member = { pools, labels, isEphemeral, registration, registeredAtMs: nowMs, seenAtMs: nowMs, ...about };
    const { record } = await this.members.create(tenant, id, { ...member, name: `${name}-${id.slice(2)}` });
    await this.#use({ tenant, registration, id });
    return await this.#credential(record);
  }

  async #use({
    tenant,
    registration,
    id,
  }: {
    readonly tenant: string;
    readonly registration: string;
    readonly id: string;
  }) {
    try {
      const used = await this.registrations.update(tenant, registration, (value) => {
        if (value.used.includes(id)) return value;
        if (value.used.length >= value.uses) throw refused("the token was used as often as it may be");
        return { ...value, used: [...value.used, id] };
      });
      if (!used) throw refused("the token is not known here");
    } catch (error) {
      await this.members.remove(tenant, id);
      throw error;
    }
  }

  /** The caller is a worker that registered; its next credential, and whether it is to leave. */
  async renew({ tenant, worker = "" }: Principal, about: WorkerAbout) {
    const seenAtMs = this.#ports.clock.wallMs();
    const record = await this.members.update(tenant, worker, (value) => ({ ...value, ...about, seenAtMs }));
    if (!record) throw refused("the worker was removed: register it again");
    const drain = versionProblem(about.version, this.#ports.versionMin);
    return { ...(await this.#credential(record)), ...(drain !== undefined && { drain }) };
  }

  /** Revokes the token, and removes what it registered. */
  async end(tenant: string, registration: string): Promise<void> {
    const found = await this.registrations.read(tenant, registration);
    if (!found) return;
    for (const id of found.value.used) await this.members.remove(tenant, id);
    await this.registrations.remove(tenant, registration);
  }

  isMember = async (tenant: string, worker: string): Promise<boolean> =>
    (await this.members.read(tenant, worker)) !== undefined;

  /** WR2 */
  async #credential({ tenant, name: worker, value: { name, pools, labels, isEphemeral } }: MemberRecord) {
    const grant = { name, tenant, roles: ["executor"] as const, pools, labels };
    const { token, untilMs } = await issueGrant(this.#ports.issuer, grant, { worker }, credentialMs);
    return { tenant, name, token, untilMs, renewInMs: renewMs, pools, labels, isEphemeral };
  }

  async #forget(tenant: string, nowMs: number): Promise<void> {
    for (const { name, version, value } of (await this.registrations.list({ tenant, limit: 500 })).records)
      if (value.untilMs <= nowMs) await this.registrations.remove(tenant, name, version);
    for (const { name, version, value } of (await this.members.list({ tenant, limit: 500 })).records)
      if (value.seenAtMs + forgottenMs <= nowMs) await this.members.remove(tenant, name, version);
  }
}

const refused = (why: string): Problem => new Problem(401, why, { headers: { "www-authenticate": "Bearer" } });
