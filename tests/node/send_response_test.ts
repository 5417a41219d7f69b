import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { describe, it } from "node:test";
import { sendResponse } from "../../src/node/serving/send_response.ts";
import { type ByteSink, PushedBody } from "../../src/protocol/server_sockets.ts";
import { laterTurn } from "../../src/util/clock.ts";

/** A response of Node's server whose socket takes nothing before it drains. */
function newOutgoing() {
  const written: number[] = [];
  const events = Object.assign(new EventEmitter(), {
    destroyed: false,
    writableLength: 0,
    isEnded: false,
    writeHead() {},
    flushHeaders() {},
    write: (bytes: Uint8Array) => (written.push(bytes.byteLength), false),
    end(this: { isEnded: boolean }) {
      this.isEnded = true;
    },
    destroy(this: { destroyed: boolean }) {
      this.destroyed = true;
    },
  });
  return { outgoing: events as typeof events & ServerResponse, events, written };
}

async function until(isDone: () => boolean): Promise<void> {
  while (!isDone()) await laterTurn();
}

describe("sendResponse", () => {
  it("waits for a slow client before each piece, and leaves no listener behind that has waited", async () => {
    const { outgoing, events, written } = newOutgoing();
    const sent = sendResponse(new Response(new Uint8Array(20 * 256 * 1024)), outgoing);
    for (let i = 1; i <= 20; i++) {
      await until(() => written.length === i);
      assert.deepEqual([events.listenerCount("drain"), events.listenerCount("close")], [1, 2]);
      events.emit("drain");
    }
    await sent;
    assert.deepEqual([events.isEnded, events.listenerCount("drain"), events.listenerCount("close")], [
      true,
      0,
      0,
    ]);
  });

  it("gives up a body whose client has left, before it began to write or in the middle of a chunk", async () => {
    for (const hasLeftBefore of [true, false]) {
      const { outgoing, events, written } = newOutgoing();
      events.destroyed = hasLeftBefore;
      let isGivenUp = false;
      const body = new ReadableStream({
        start: (controller) => controller.enqueue(new Uint8Array(20 * 256 * 1024)),
        cancel: () => void (isGivenUp = true),
      });
      const sent = sendResponse(new Response(body), outgoing);
      if (!hasLeftBefore) {
        await until(() => written.length === 1);
        events.destroyed = true;
        events.emit("close");
      }
      await sent;
      assert.deepEqual([isGivenUp, written.length], [true, hasLeftBefore ? 0 : 1]);
    }
  });

  it("frees the chunks that it owns once the socket has taken them, and not before", async () => {
    const chunks = Array.from({ length: 4 }, () => new Uint8Array(20 * 1024));
    const { outgoing, events } = newOutgoing();
    const given: Uint8Array[] = [];
    Object.assign(events, { write: (bytes: Uint8Array) => given.push(bytes) > 0 });
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const body = new ReadableStream({
      type: "bytes",
      async pull(controller) {
        if (chunks.length === 1) await released;
        const chunk = chunks.shift();
        if (chunk !== undefined) return controller.enqueue(chunk);
        controller.close();
        controller.byobRequest?.respond(0);
      },
    });
    events.writableLength = 1;
    const sent = sendResponse(new Response(body), outgoing);
    await until(() => given.length === 3);
    for (let i = 0; i < 3; i++) await laterTurn();
    assert.deepEqual(given.map(({ byteLength }) => byteLength), [20_480, 20_480, 20_480]);
    events.writableLength = 0;
    release();
    await sent;
    assert.deepEqual(given.map(({ byteLength }) => byteLength), [0, 0, 0, 0]);
  });

  it("notifies a watch whose client has left, before it began to write or later, and writes nothing then", async () => {
    for (const hasLeftBefore of [true, false]) {
      const { outgoing, events, written } = newOutgoing();
      events.destroyed = hasLeftBefore;
      let sink!: ByteSink;
      let left = 0;
      const user = { onDrained() {}, onGone: () => left++ };
      const body = new PushedBody({ type: "bytes", pull() {} }, (to) => {
        sink = to;
        return user;
      });
      await sendResponse(new Response(body), outgoing);
      if (!hasLeftBefore) {
        assert.equal(left, 0);
        events.destroyed = true;
        events.emit("close");
      }
      assert.equal(left, 1);
      sink.write(new Uint8Array(1));
      assert.deepEqual(written, []);
    }
  });
});
