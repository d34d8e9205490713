/** For tests: an agent that sends wrong bytes to others. Arguments: data folder, machine, root, share of units. */
import { httpOf } from "#app/client/server.ts";
import { runAgent } from "#doors/deploy/commands/run-agent.ts";

const [data = "", machine, root, share = "1"] = process.argv.slice(2);
const none = { trust: undefined, rack: undefined, peer: undefined, upload: undefined };
const options = { region: "eu", machine, labels: ["role=web"], root, ...none };

await runAgent(options, httpOf({ data }, process.env), {
  note: (text) => process.stderr.write(`${text}\n`),
  disturb(bytes, unit) {
    if (((unit * 2_654_435_761) % 1_000) / 1_000 >= Number(share)) return bytes;
    const wrong = Buffer.from(bytes);
    wrong.writeUInt8((wrong.readUInt8(0) + 1) % 256, 0);
    return wrong;
  },
});
