import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { encode } from "#wire/message.ts";
import { callOf } from "#shard/work/calls.ts";
import { plainAnswer, responseMessage } from "./responses.ts";
import { batchExchange, commandExchange, queryExchange, takeExchange } from "#shard/testing/work.ts";

describe("an answer written directly from the shard's response", () => {
  for (const [what, exchange] of Object.entries({ commandExchange, batchExchange }))
    test(`is byte for byte what the generated messages write: ${what}`, () => {
      fc.assert(
        fc.property(exchange, ({ request, response }) => {
          const call = callOf(request);
          const answered = call.writeResponse(request, response);
          const plain = plainAnswer(request, response);
          equal(plain !== undefined, answered.ok);
          if (answered.ok)
            deepEqual(encode(responseMessage(call), plain), encode(call.method.response, answered.message));
        }),
        { numRuns: 600 },
      );
    });

  test("is only for commands; other answers are written as generated messages", () => {
    fc.assert(
      fc.property(fc.oneof(queryExchange, takeExchange), ({ request, response }) => {
        const call = callOf(request);
        equal(plainAnswer(request, response), undefined);
        const answered = call.writeResponse(request, response);
        if (answered.ok)
          deepEqual(encode(responseMessage(call), answered.message), encode(call.method.response, answered.message));
      }),
    );
  });
});
