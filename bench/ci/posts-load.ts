/** Sends POSTs that start runs, in a process of its own; the answers are read and their run ids returned. */
import { Agent, request } from "node:http";
import { answering } from "#bench/load-process.ts";

export type PostWork = {
  readonly kind: "post";
  /** `host:port` */
  readonly address: string;
  readonly token: string;
  /** One after the other gets the next run. */
  readonly repositories: readonly string[];
  readonly workflow: string;
  readonly runs: number;
  readonly atOnce: number;
};

export type Posted = {
  readonly runs: readonly string[];
  readonly waitsMs: readonly number[];
  readonly seconds: number;
};

const agent = new Agent({ keepAlive: true, maxSockets: 256 });

async function perform({ address, token, repositories, workflow, runs, atOnce }: PostWork): Promise<Posted> {
  const started: string[] = [];
  const waitsMs: number[] = [];
  let next = 0;
  const beganMs = performance.now();
  const sender = async (): Promise<void> => {
    for (let no = (next += 1); no <= runs; no = next += 1) {
      const path = `/v1/repositories/${repositories[no % repositories.length]}/dispatches`;
      const atMs = performance.now();
      started.push(await post({ address, token, path, body: JSON.stringify({ workflow }) }));
      waitsMs.push(performance.now() - atMs);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, sender));
  return { runs: started, waitsMs, seconds: (performance.now() - beganMs) / 1_000 };
}

type Post = { readonly address: string; readonly token: string; readonly path: string; readonly body: string };

function post({ address, token, path, body }: Post): Promise<string> {
  const [host, port] = address.split(":");
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const sent = request({ host, port, path, method: "POST", headers, agent }, (answer) => {
      const parts: Buffer[] = [];
      answer.on("data", (part: Buffer) => parts.push(part));
      answer.on("error", reject);
      answer.on("end", () => {
        const text = Buffer.concat(parts).toString("utf8");
        if (answer.statusCode === 202) resolve((JSON.parse(text) as { run: string }).run);
        else reject(new Error(`${path} was answered with ${answer.statusCode}: ${text.slice(0, 300)}`));
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

answering(perform);
