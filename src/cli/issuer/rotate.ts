import { command, serverFlags } from "#door/command.ts";

export const issuerRotate = command({
  name: "issuer rotate",
  about: "Make a new key that signs the cluster's tokens from now on; old ones verify until their tokens have ended.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...serverFlags,
    revoke: { type: "boolean", about: "trust no other key any more, because one may have leaked: all tokens are void" },
  },
  examples: ["millrace issuer rotate", "millrace issuer rotate --revoke"],
  async run({ values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { rotateIssuer } = await import("#api/issuer.ts");
    const body = { revoke: values.revoke ?? false };
    const rotated = await apiOf(values, world.env, "rotate the issuer's keys")(rotateIssuer, { body });
    const others = body.revoke ? "no other key counts" : "others verify until their tokens have ended";
    world.out(values.json ? JSON.stringify(rotated) : `${rotated.key} signs now; ${others}`);
    return 0;
  },
});
