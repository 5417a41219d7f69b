import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openByteReader, wholeBody } from "../../src/util/byte_reader.ts";

describe("openByteReader", () => {
  /** A body of bytes that fills whatever it is given; without an end. */
  const endless = () =>
    new ReadableStream({
      type: "bytes",
      pull(controller) {
        const view = controller.byobRequest?.view;
        if (view) controller.byobRequest!.respond(view.byteLength);
        else controller.enqueue(new Uint8Array(10));
      },
    });

  it("reads into a buffer that doubles while reads fill it, up to 256 KiB", async () => {
    const reader = openByteReader(endless());
    const sizes: number[] = [];
    // deno-lint-ignore no-await-in-loop -- one after the other
    for (let i = 0; i < 5; i++) sizes.push((await reader.read())!.byteLength / 1_024);
    assert.deepEqual(sizes, [64, 128, 256, 256, 256]);
    reader.cancel();
  });

  it("reads into another buffer while a read has it", async () => {
    const reader = openByteReader(endless());
    const chunks = await Promise.all([reader.read(), reader.read()]);
    assert.deepEqual(chunks.map((chunk) => chunk?.byteLength), [65_536, 65_536]);
    reader.cancel();
  });

  it("refuses a body that has a reader, and lets go of one that it gives up", async () => {
    const body = endless();
    const reader = openByteReader(body);
    assert.throws(() => openByteReader(body), TypeError);
    await reader.read();
    reader.cancel();
    assert.equal(body.locked, false);
  });

  it("refuses chunks that are no bytes", async () => {
    const body = new ReadableStream({ start: (controller) => controller.enqueue("text") });
    await assert.rejects(openByteReader(body).read(), /a chunk is string, not bytes/);
  });

  it("passes the reason on for which it gives a body up", () => {
    const reasons: unknown[] = [];
    openByteReader(new ReadableStream({ cancel: (reason) => void reasons.push(reason) })).cancel("enough");
    assert.deepEqual(reasons, ["enough"]);
  });
});

describe("wholeBody", () => {
  const bodyOf = (pieces: readonly number[][]) => {
    let i = 0;
    let isCancelled = false;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) =>
        i < pieces.length ? controller.enqueue(Uint8Array.from(pieces[i++])) : controller.close(),
      cancel: () => void (isCancelled = true),
    });
    return { body, isCancelled: () => isCancelled };
  };
  const pieces = Array.from(
    { length: 300 },
    (_, i) => Array.from({ length: i % 7 }, (_, j) => (i + j) % 256),
  );

  it("joins pieces of any length", async () => {
    const whole = await wholeBody(bodyOf(pieces).body, 10_000);
    assert.deepEqual(Array.from(whole!), pieces.flat());
    assert.equal((await wholeBody(bodyOf([]).body, 0))!.byteLength, 0);
    for (const sizes of [[16_384], [16_383, 2], [40_000, 1, 9_151], [70_000, 70_000]]) {
      const large = sizes.map((size, i) => Array.from({ length: size }, (_, j) => (i + j) % 251));
      assert.deepEqual(Array.from((await wholeBody(bodyOf(large).body, 200_000))!), large.flat());
    }
  });

  it("is undefined beyond its limit, and where what comes is not taken; then the rest is cancelled", async () => {
    const { length } = pieces.flat();
    assert.equal((await wholeBody(bodyOf(pieces).body, length))?.byteLength, length);
    assert.equal(await wholeBody(bodyOf(pieces).body, length - 1), undefined);
    const long = bodyOf(pieces);
    assert.equal(await wholeBody(long.body, length - 100), undefined);
    assert.ok(long.isCancelled());
    let taken = 0;
    const refused = bodyOf(pieces);
    assert.equal(await wholeBody(refused.body, length, (bytes) => (taken += bytes) < 100), undefined);
    assert.ok(refused.isCancelled());
    assert.ok(taken >= 100 && taken < 110);
  });

  it("takes no more memory than what has come, before the end", async () => {
    const { Uint8Array } = globalThis;
    let taken = 0;
    let left = 1_000;
    const all = Promise.withResolvers<void>();
    const piece = new Uint8Array(3_000);
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (left-- > 0) controller.enqueue(piece);
        else all.resolve();
      },
    });
    globalThis.Uint8Array = new Proxy(Uint8Array, {
      construct(target, [size, ...more]) {
        if (typeof size === "number") taken += size;
        return new target(size, ...more as []);
      },
    });
    try {
      void wholeBody(body, 10_000_000);
      await all.promise;
    } finally {
      globalThis.Uint8Array = Uint8Array;
    }
    assert.ok(taken >= 2_900_000 && taken < 3_100_000, `${taken} bytes`);
  });
});
