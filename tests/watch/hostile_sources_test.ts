import type { KubernetesObject } from "@listwatch/cache";
import {
  decodeList,
  decodeWatch,
  newEventValidator,
  newObjectValidator,
  validateList,
} from "@listwatch/cache/client";
import assert from "node:assert/strict";
import { describe, it } from "node:test";

const MIB = 1024 * 1024;

/** A body of pieces that are made when they are read; `bytes` counts them. */
class Body {
  bytes = 0;
  isCancelled = false;
  readonly stream: ReadableStream<Uint8Array>;

  constructor(pieces: Iterable<string>) {
    const encoder = new TextEncoder();
    const iterator = pieces[Symbol.iterator]();
    this.stream = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const { done, value } = iterator.next();
        if (done) return controller.close();
        const bytes = encoder.encode(value);
        this.bytes += bytes.length;
        controller.enqueue(bytes);
      },
      cancel: () => void (this.isCancelled = true),
    }, { highWaterMark: 0 });
  }
}

function* pieces(text: string, length: number): Generator<string> {
  for (let i = 0; i < text.length; i += length) yield text.slice(i, i + length);
}

function* endless(head: string, piece: string): Generator<string> {
  yield head;
  // The test ends, whatever the decoder does with it.
  for (let length = 0; length < 256 * MIB; length += piece.length) yield piece;
}

async function list(body: Body, options: { readonly maxListBytes?: number } = {}): Promise<number> {
  const validate = newObjectValidator();
  const page = await decodeList<KubernetesObject>(body.stream, {
    validateList: (each) => validateList(each, "pods"),
    validateItem: (item, index) => validate(item, `items[${index}]`),
    ...options,
  });
  return page.items.length;
}

async function watch(body: Body): Promise<string[]> {
  const types: string[] = [];
  for await (const batch of decodeWatch(body.stream, { validate: newEventValidator() })) {
    for (const { type } of batch) types.push(type);
  }
  return types;
}

// Each is so large that a decoder which looks at anything twice for
// each piece or bracket does not end in this year.
describe("decodeList of a hostile server", () => {
  const metadata = '"apiVersion":"v1","metadata":{"resourceVersion":"1"}';

  it("reads what is before the items once, whatever looks like items there", async () => {
    const heads = [
      `"x":{${Array.from({ length: 60_000 }, (_, i) => `"a${i}":{"items":[1]}`)}}`,
      `"x":"${'\\"items\\":['.repeat(150_000)}"`,
      `"x":[${Array.from({ length: 60_000 }, () => '"items",["items"]')}]`,
    ];
    for (const head of heads) {
      const text = `{"kind":"PodList",${head},${metadata},"items":[{"metadata":{"name":"a"}}]}`;
      assert.equal(await list(new Body(pieces(text, 50))), 1);
    }
  });

  it("refuses brackets without an end", async () => {
    for (const piece of [',"a":{"items":[', '"items":[', "[[[["]) {
      const text = `{"kind":"PodList"${piece.repeat(100_000)}`;
      await assert.rejects(list(new Body(pieces(text, 50))), { name: "DecodeError" });
    }
  });

  it("puts a long item together once that comes in small pieces", async () => {
    const text = `{"kind":"PodList",${metadata},"items":[{"metadata":{"name":"a"},"x":"${
      "y".repeat(15 * MIB)
    }"}]}`;
    assert.equal(await list(new Body(pieces(text, 100))), 1);
  });

  it("gives up items without an end, before any metadata and however short they are", async () => {
    for (const item of ["{},", '{"metadata":{"name":"a"}},']) {
      const body = new Body(endless('{"kind":"PodList","items":[', item.repeat(1_000)));
      await assert.rejects(list(body, { maxListBytes: 20 * MIB }), /more than [0-9]+ items; ask for pages/);
      assert.ok(body.isCancelled);
      assert.ok(body.bytes < 2 * MIB, `${body.bytes} bytes`);
    }
  });

  it("gives up a head and an item without an end", async () => {
    for (const head of ['{"kind":"PodList","metadata":{"x":"', '{"items":[{"x":"']) {
      const body = new Body(endless(head, "y".repeat(MIB)));
      await assert.rejects(list(body), { name: "DecodeError" });
      assert.ok(body.isCancelled);
      assert.ok(body.bytes < 20 * MIB, `${body.bytes} bytes`);
    }
  });
});

describe("decodeWatch of a hostile server", () => {
  it("puts a long line together once that comes in small pieces", async () => {
    const line = `{"type":"ADDED","object":{"metadata":{"name":"a"},"x":"${"y".repeat(15 * MIB)}"}}\n`;
    assert.deepEqual(await watch(new Body(pieces(line, 100))), ["ADDED"]);
  });

  it("gives up a line without an end", async () => {
    const body = new Body(endless('{"type":"ADDED","object":{"x":"', "y".repeat(MIB)));
    assert.deepEqual(await watch(body), ["ERROR"]);
    assert.ok(body.isCancelled);
    assert.ok(body.bytes < 20 * MIB, `${body.bytes} bytes`);
  });
});
