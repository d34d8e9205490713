/** Where lines go. If the reader is too slow, lines are dropped and their number is logged; memory stays bounded. */
import type { Writable } from "node:stream";

export function streamSink(
  stream: Pick<Writable, "write" | "writableLength">,
  { backlogBytesMax = 1024 * 1024 }: { readonly backlogBytesMax?: number } = {},
): (line: string) => void {
  let lost = 0;
  return (line) => {
    if (stream.writableLength > backlogBytesMax) {
      lost += 1;
      return;
    }
    if (lost > 0) stream.write(`${JSON.stringify({ level: "warn", event: "log lines lost", count: lost })}\n`);
    lost = 0;
    stream.write(line);
  };
}
