/**
 * The goal of one service in one region: a chain of signed entries. What a machine should run is the newest entry
 * that it has seen and could verify; everything else about a release is how the fleet gets there.
 *
 * GO1 Versions only grow. A rollback is a higher version that names an old manifest.
 * GO2 Each entry names the hash of the entry before it, so that a reader that follows sees every change or a gap.
 * GO3 A wave beyond the first carries a certificate of the wave before it (certificate.ts), with the digest of the
 *     evidence on which that one was found healthy. Machines check it before they activate anything more.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { isDigest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { Pin, pinsMax } from "./pins.ts";
import { Region, ServiceName, wholePpm } from "#doors/deploy/service/service-file.ts";
import { checkCertificate } from "./certificate.ts";
import { SignedDocument, type KeyRing, type Signed, type Signer } from "#doors/deploy/signing/signing.ts";

const Hash = z.string().regex(/^[0-9a-f]{64}$/, "not a SHA-256 hash");
const DigestText = z.string().refine(isDigest, "not a digest");

export const Goal = z.strictObject({
  format: z.literal(1),
  service: ServiceName,
  region: Region,
  version: z.int().min(1),
  /** Null for the first entry of the chain. */
  previous: Hash.nullable(),
  kind: z.enum(["release", "rollback"]),
  /** Nothing is activated while it stands; what runs goes on. */
  halted: z.boolean(),
  /** The job that wants it. */
  release: z.string().min(1).max(200),
  /** The signed manifest to run; null where there is none to go back to. */
  manifest: DigestText.nullable(),
  /** Labels that a machine must all have for the service to be its business. */
  labels: z.array(z.string().max(201)).max(100),
  /** The manifest of the last release that ended well, for new machines outside the share; null before the first. */
  stable: DigestText.nullable(),
  /** Machines whose place (membership.ts) is below this run the manifest; the others keep what they have. */
  sharePpm: z.int().min(0).max(wholePpm),
  /** Machines that are in the wave whatever their place, so that the first wave of a small fleet is not empty. */
  named: z.array(z.string().min(1).max(200)).max(1_000),
  wave: z.int().min(0).max(1_000),
  evidence: DigestText.nullable(),
  /** Left out: nothing has to be shown for this entry. */
  certificate: SignedDocument.strict().optional(),
  /** Left out: none. */
  pins: z.array(Pin).max(pinsMax).optional(),
});
export type Goal = z.output<typeof Goal>;

export type GoalChange = Omit<Goal, "format" | "service" | "region" | "version" | "previous">;

/** An entry with the signature over it. */
export type SignedGoal = { readonly goal: Goal; readonly signed: Signed };

/** Appends a change to the chain. */
export function nextGoal(
  at: { readonly service: string; readonly region: string },
  last: SignedGoal | undefined,
  change: GoalChange,
  signer: Signer,
): SignedGoal {
  const goal = Goal.parse({
    format: 1,
    service: at.service,
    region: at.region,
    version: (last?.goal.version ?? 0) + 1,
    previous: last ? goalHash(last.signed.body) : null,
    ...change,
  });
  const refused = refuseEvidence(last?.goal, goal);
  if (refused !== undefined) throw new Fault("invalid", "write goal", { why: refused });
  return { goal, signed: signer.sign("goal", JSON.stringify(goal)) };
}

/** Reads an entry and checks its signature. */
export function openGoal(signed: Signed, ring: Pick<KeyRing, "open">): SignedGoal {
  const body = ring.open(signed, "goal");
  const parsed = Goal.safeParse(JSON.parse(body));
  if (!parsed.success) throw new Fault("invalid", "read goal", { why: parsed.error.issues[0]?.message });
  return { goal: parsed.data, signed };
}

/**
 * Why a machine that follows `current` refuses `offered`; undefined: it takes it. A machine that was away jumps to the
 * newest entry, so only a direct successor must name the hash of the current one (GO2).
 */
export function refuseGoal(
  current: SignedGoal | undefined,
  { goal: offered }: SignedGoal,
  machine: { readonly service: string; readonly region: string; readonly ring: Pick<KeyRing, "open"> },
): string | undefined {
  if (offered.service !== machine.service || offered.region !== machine.region)
    return `it is for ${offered.service} in ${offered.region}`;
  const refused = refuseEvidence(current?.goal, offered, machine.ring);
  if (refused !== undefined) return refused;
  if (!current) return undefined;
  if (offered.version <= current.goal.version)
    return `version ${offered.version} is not newer than ${current.goal.version}`;
  if (offered.version === current.goal.version + 1 && offered.previous !== goalHash(current.signed.body))
    return `version ${offered.version} does not follow the version ${current.goal.version} that is known here`;
  return undefined;
}

export const goalHash = (body: string): string => createHash("sha256").update(body).digest("hex");

/** GO3; `ring` is left out where the entry is written. */
function refuseEvidence(last: Goal | undefined, goal: Goal, ring?: Pick<KeyRing, "open">): string | undefined {
  const { kind, wave, evidence, certificate } = goal;
  if (kind !== "release" || wave === 0 || activatesNoMore(last, goal)) return undefined;
  if (evidence === null) return `wave ${wave} has no evidence that wave ${wave - 1} is healthy`;
  if (!certificate) return `wave ${wave} has no certificate of wave ${wave - 1}`;
  return ring && checkCertificate(certificate, { ...goal, evidence, wave: wave - 1 }, ring);
}

/** A halt, a pin or a new key for what the last entry says already. */
const activatesNoMore = (last: Goal | undefined, { release, wave, manifest, sharePpm }: Goal): boolean =>
  last?.kind === "release" &&
  last.release === release &&
  last.wave === wave &&
  last.manifest === manifest &&
  last.sharePpm >= sharePpm;
