import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { describe, it } from "node:test";
import { gunzipSync } from "node:zlib";
import fc from "fast-check";
import { gzipBytes, PrefixableGzip } from "../../../src/hono/send/gzip.ts";
import { concatenated } from "../../../src/util/bytes.ts";
import { propertyOptions } from "../../property.ts";

type Bytes = Uint8Array<ArrayBuffer>;

const joined = (chunks: readonly Uint8Array[]): Bytes =>
  concatenated(chunks, chunks.reduce((sum, { byteLength }) => sum + byteLength, 0));

/** Cuts bytes into pieces. */
function cut(bytes: Bytes, length: number): Bytes[] {
  return Array.from(
    { length: Math.ceil(bytes.byteLength / length) },
    (_, i) => bytes.subarray(i * length, (i + 1) * length),
  );
}

/** Refuses what comes after the first member of a gzip file, as browsers' decoders do. */
async function strictGunzip(bytes: Bytes): Promise<Bytes> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

describe("PrefixableGzip", () => {
  it("of any bytes, with any prefix, is one gzip member of both", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 2_000 }),
        fc.uint8Array({ maxLength: 300 }),
        fc.integer({ min: 1, max: 500 }),
        async (content, prefix, length) => {
          const gzip = await gzipBytes(new Uint8Array(content));
          const prefixable = PrefixableGzip.of(cut(gzip, length), content.byteLength)!;
          for (const head of [prefix, prefix.subarray(1), new Uint8Array()]) {
            const expected = joined([head, content]);
            const actual = joined(prefixable.with(head));
            assert.deepEqual(await strictGunzip(actual), expected);
            assert.deepEqual(new Uint8Array(gunzipSync(actual)), expected);
          }
        },
      ),
      propertyOptions(40),
    );
  });

  it("takes prefixes of several blocks, and large contents", async () => {
    const content = new TextEncoder().encode("some text, again and again; ".repeat(50_000));
    const prefix = new Uint8Array(150_000).map((_, i) => i * i);
    const gzip = PrefixableGzip.of([await gzipBytes(content)], content.byteLength)!;
    const expected = joined([prefix, content]);
    assert.ok(Buffer.from(await strictGunzip(joined(gzip.with(prefix)))).equals(expected));
  });

  it("does not take a file whose header has a name in it, nor what is no file", () => {
    const named = new Uint8Array(40);
    named.set([0x1f, 0x8b, 8, 8]);
    assert.equal(PrefixableGzip.of([named], 1), undefined);
    assert.equal(PrefixableGzip.of([], 0), undefined);
    assert.equal(PrefixableGzip.of([new Uint8Array(5)], 0), undefined);
    assert.equal(PrefixableGzip.of([Uint8Array.of(0x1f, 0x8b, 8, 0)], 0), undefined, "a header alone");
  });

  it("counts its first and last chunk twice, which are made again for each prefix", async () => {
    const gzip = await gzipBytes(new Uint8Array(100).map((_, i) => i * i));
    const { byteLength } = gzip.subarray(10, -8);
    assert.equal(PrefixableGzip.of([gzip], 100)!.bytes, 3 * byteLength);
    const three = [gzip.slice(0, 20), gzip.slice(20, 40), gzip.slice(40)];
    assert.equal(PrefixableGzip.of(three, 100)!.bytes, byteLength + 10 + gzip.byteLength - 40 - 8);
  });

  it("is made once for the readers of one prefix", async () => {
    const gzip = PrefixableGzip.of([await gzipBytes(new Uint8Array(9))], 9)!;
    const prefix = new Uint8Array(3);
    assert.equal(gzip.with(prefix), gzip.with(prefix));
    assert.notEqual(gzip.with(prefix), gzip.with(prefix.slice()));
  });
});
