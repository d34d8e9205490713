import { callEndpoint, type Fetch } from "#http/client.ts";
import { command, serverFlags, type ServerFlagValues, type World } from "#door/command.ts";
import { tableLines } from "#door/table.ts";
import { listKeys, revokeKey, rotateKey } from "#doors/deploy/endpoints.ts";

const fetchOf = async (values: ServerFlagValues, world: World): Promise<Fetch> => {
  const http = await world.http(values);
  return (path, init) => http.reach(path, init);
};

export const deployKeys = command({
  name: "deploy keys",
  about: "List the keys that machines trust: the one that signs, earlier ones that still count, and revoked ones.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace deploy keys"],
  async run({ values }, world) {
    const { version, keys, revoked, signs } = await callEndpoint(await fetchOf(values, world), listKeys, {});
    const { keyIdOf } = await import("#doors/deploy/signing/signing.ts");
    const rows = [
      ...keys.map((pem) => ({ key: keyIdOf(pem), state: keyIdOf(pem) === signs ? "signs" : "counts" })),
      ...revoked.map((key) => ({ key, state: "revoked" })),
    ];
    if (values.json) for (const row of rows) world.out(JSON.stringify({ ...row, version }));
    else
      for (const line of tableLines(
        ["KEY", "STATE"],
        rows.map(({ key, state }) => [key, state]),
      ))
        world.out(line);
    return 0;
  },
});

export const deployRotateKey = command({
  name: "deploy rotate-key",
  about: "Have a new key sign goals and manifests from now on; machines learn of it by themselves.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace deploy rotate-key"],
  async run({ values }, world) {
    const { key } = await callEndpoint(await fetchOf(values, world), rotateKey, {});
    world.out(values.json ? JSON.stringify({ kind: "rotated", key }) : key);
    return 0;
  },
});

export const deployRevokeKey = command({
  name: "deploy revoke-key",
  about: "Revoke a key: no machine activates what it signed any more. What runs goes on.",
  words: "<key>",
  positionalsMax: 1,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace deploy revoke-key 0f3a9c0e5d7b41f2a6c8e9d0b1a2c3d4"],
  async run({ positionals: [key], values }, world) {
    if (key === undefined) {
      world.note("deploy revoke-key: name a key; millrace deploy keys lists them");
      return 2;
    }
    await callEndpoint(await fetchOf(values, world), revokeKey, { params: { key } });
    if (values.json) world.out(JSON.stringify({ kind: "revoked", key }));
    return 0;
  },
});
