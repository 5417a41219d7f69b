import assert from "node:assert/strict";
import type { ListPage } from "../../src/meta/list_watch.ts";
import { DecodeError, NetworkError } from "../../src/meta/request.ts";
import { nextTurn, realClock } from "../../src/util/clock.ts";
import {
  decodeList,
  type DecodeListOptions,
  type ListEnvelope,
  readBody,
  readText,
} from "../../src/watch/list_decoder.ts";
import { ObjectTextReader } from "../../src/text/object_text_reader.ts";
import { Projection } from "../../src/text/field_tree.ts";
import { suitesFor } from "../storages.ts";
import { bodyOf, byteBodyOf, bytes, openBody, splitAt } from "./bodies.ts";
import { CountingSignal } from "../counting_signal.ts";
import { propertyOptions } from "../property.ts";

const trusting: DecodeListOptions = {
  validateList: (list) => list as unknown as ListEnvelope,
  validateItem: () => undefined,
  subject: '"pods"',
};

const { describe, it, storage } = suitesFor(["texts, validated by their heads", "texts", "objects"]);

/** Objects as texts are opened where they are handed out, so that every test compares them too. */
function decodeAny<T>(body: ReadableStream<Uint8Array>, options: DecodeListOptions): Promise<ListPage<T>> {
  return decodeList<T>(body, {
    ...(storage() !== "objects" && {
      asText: {
        reader: new ObjectTextReader(),
        hold: (text) => JSON.parse(text),
        acceptsOrdinary: storage() !== "texts",
      },
    }),
    ...options,
  });
}

const decode = (value: unknown, options: Partial<DecodeListOptions> = {}) =>
  decodeAny<Record<string, unknown>>(
    bodyOf([bytes(typeof value === "string" ? value : JSON.stringify(value))]),
    {
      ...trusting,
      ...options,
    },
  );

const podList = (items: unknown) => ({
  kind: "PodList",
  apiVersion: "v1",
  metadata: { resourceVersion: "7" },
  items,
});

describe("decodeList", () => {
  it("validates items with odd heads, and the others unless an ordinary head is enough", async () => {
    const validated: number[] = [];
    const items = [{ metadata: { name: "a" } }, { metadata: { name: "b" }, kind: "Table", apiVersion: "v1" }];
    const validateItem = (_item: unknown, index: number) => void validated.push(index);
    await decode(podList(items), { validateItem });
    assert.deepEqual(validated, storage() === "texts, validated by their heads" ? [1] : [0, 1]);
  });

  it("takes the last of several keys of items, as a parser does, wherever the list says what they are", async () => {
    const item = (name: string) => `{"metadata":{"name":"${name}"}}`;
    const bad = '{"metadata":{"name":"bad"},"kind":"Table","apiVersion":"v1"}';
    const twice = `"items":[${item("a")},${bad}],"items":[${item("b")},${bad}]`;
    const type = '"kind":"PodList","apiVersion":"v1"';
    const validateItem = (object: unknown, index: number) => {
      const { name } = (object as { metadata: { name: string } }).metadata;
      return name === "bad" ? { reason: "it is bad", path: `items[${index}]` } : undefined;
    };
    for (const text of [`{${type},${twice}}`, `{${twice},${type}}`]) {
      const page = await decode(text, { validateItem });
      assert.deepEqual(page.items.map(({ metadata }) => metadata), [{ name: "b" }], text);
      assert.deepEqual(page.quarantined, [{ reason: "it is bad", path: "items[1]" }]);
    }
  });

  it("gives the same page wherever the text is split", async () => {
    const page = podList([{ metadata: { name: "grün-€-😀" } }]);
    const all = bytes(JSON.stringify(page));
    for (let i = 0; i <= all.length; i++) {
      for (const body of [bodyOf(splitAt(all, [i])), byteBodyOf(splitAt(all, [i]))]) {
        const { metadata, items } = await decodeAny<Record<string, unknown>>(body, trusting);
        assert.deepEqual(metadata, { resourceVersion: "7" });
        assert.deepEqual(items, [{ metadata: { name: "grün-€-😀" }, apiVersion: "v1", kind: "Pod" }]);
      }
    }
  });

  it("gives items the list's apiVersion and kind where they have neither", async () => {
    const { items } = await decode({
      ...podList([{ metadata: {} }, { kind: "Other", metadata: {} }, { apiVersion: "v2", metadata: {} }]),
    });
    assert.deepEqual(items.map(({ apiVersion, kind }) => [apiVersion, kind]), [
      ["v1", "Pod"],
      [undefined, "Other"],
      ["v2", undefined],
    ]);
  });

  it("gives items their type also where the list names it after them", async () => {
    const list = { items: [{ metadata: { name: "a" } }, { kind: "Other", metadata: {} }] };
    const { items } = await decode({ ...list, metadata: {}, kind: "PodList", apiVersion: "v1" });
    assert.deepEqual(items, [
      { metadata: { name: "a" }, apiVersion: "v1", kind: "Pod" },
      { kind: "Other", metadata: {} },
    ]);
  });

  it("projects and types the items whose key is written with escapes, one by one", async () => {
    const text =
      '{"kind":"PodList","apiVersion":"v1","metadata":{},"it\\u0065ms":[{"metadata":{},"spec":{"a":1}}]}';
    const taken: unknown[] = [];
    const { items } = await decode(text, {
      projection: new Projection({ drop: ["spec"] }),
      intake: (item) => (taken.push(item), item),
    });
    assert.deepEqual(items, [{ metadata: {}, apiVersion: "v1", kind: "Pod" }]);
    assert.deepEqual(taken, items);
  });

  it("leaves items alone when the list does not say what they are", async () => {
    for (const kind of [undefined, "List", "Pods"]) {
      const { items } = await decode({ ...podList([{ metadata: {} }]), kind });
      assert.deepEqual(items, [{ metadata: {} }]);
    }
  });

  it("sets refused items aside, keeps the others in order, and asks about them with their type filled in", async () => {
    const asked: unknown[] = [];
    const page = await decode(podList([{ n: 0 }, { n: 1 }, { n: 2 }, 3]), {
      validateItem: (item, index) => {
        asked.push((item as { kind?: string }).kind, (item as { n?: number }).n);
        return index % 2 === 1 ? { reason: "odd", path: `items[${index}]` } : undefined;
      },
    });
    assert.deepEqual(page.items.map(({ n }) => n), [0, 2]);
    assert.deepEqual(page.quarantined, [{ reason: "odd", path: "items[1]" }, {
      reason: "odd",
      path: "items[3]",
    }]);
    assert.deepEqual(asked, ["Pod", 0, "Pod", 1, "Pod", 2, undefined, undefined]);
  });

  it("has no quarantine where nothing was refused", async () => {
    assert.equal("quarantined" in await decode(podList([{}])), false);
  });

  it("shows the list without its items to its validator, and throws what that throws", async () => {
    const seen: unknown[] = [];
    await decode(podList([{}, {}]), {
      validateList: (list) => {
        seen.push(list);
        return list as unknown as ListEnvelope;
      },
    });
    assert.deepEqual(seen, [{ ...podList([]) }]);
    const refusal = new Error("no list of mine");
    await assert.rejects(decode(podList([]), { validateList: () => assert.fail(refusal) }), refusal);
  });

  it("takes null for no items, as Go writes an empty list", async () => {
    assert.deepEqual((await decode(podList(null))).items, []);
  });

  it("takes a list without items for an empty one, where its validator says so", async () => {
    const validateList = (list: unknown) => ({ ...list as ListEnvelope, items: null });
    assert.deepEqual(await decode({ kind: "PodList", metadata: {} }, { validateList }), {
      kind: "PodList",
      metadata: {},
      items: [],
    });
  });

  it("throws what its validator of items throws, as it is", async () => {
    const thrown = new Error("no item of mine");
    const text = '{"kind":"PodList","apiVersion":"v1","items":[1]}';
    await assert.rejects(decode(text, { validateItem: () => assert.fail(thrown) }), thrown);
  });

  it("refuses what is no list", async () => {
    const error = (pattern: RegExp) => (error: unknown) =>
      error instanceof DecodeError && pattern.test(error.message);
    await assert.rejects(
      decode('{"kind":'),
      error(/^Cannot list "pods": the answer is not JSON: .*begins with "{\\"kind\\":"$/),
    );
    await assert.rejects(decode(""), error(/not JSON/));
    await assert.rejects(decode('{"items":[1,}'), error(/the answer is not JSON: /));
    await assert.rejects(decode('{"items":[tru]}'), error(/the answer is not JSON: /));
    await assert.rejects(decode("[]"), error(/is no list; it begins with "\[\]"/));
    await assert.rejects(decode("null"), error(/is no list/));
    await assert.rejects(decode(podList({})), error(/"items" is object, not an array/));
    await assert.rejects(decode({ metadata: {} }), error(/"items" is undefined, not an array/));
  });

  it("quotes sixty characters of what is no list", async () => {
    const quoted = async (text: string) => {
      try {
        await decode(JSON.stringify(text));
      } catch (error) {
        return (error as Error).message.split(" begins with ")[1];
      }
      return assert.fail("it is a list");
    };
    const text = "a ".repeat(29); // and two quotation marks
    assert.equal(await quoted(text), JSON.stringify(JSON.stringify(text)));
    assert.equal(await quoted(`${text} `), JSON.stringify(`"${text} …`));
  });

  it("counts 512 bytes for each item, however short they are", async () => {
    const items = (count: number) => podList(Array.from({ length: count }, () => ({})));
    const limits = { maxListBytes: 3 * 512 };
    assert.equal((await decode(items(3), limits)).items.length, 3);
    await assert.rejects(
      decode(items(4), limits),
      /^DecodeError: Cannot list "pods": it has more than 3 items; /,
    );
  });

  it("throws a NetworkError when the body is cut off", async () => {
    const body = bodyOf(
      [bytes('{"items":[')],
      new TypeError("terminated", { cause: new Error("other side closed") }),
    );
    await assert.rejects(decodeAny(body, trusting), (error) => {
      assert.ok(error instanceof NetworkError);
      assert.equal(error.reason, "UnexpectedEOF");
      assert.equal(error.message, 'Cannot read the answer for "pods": it was cut off: other side closed');
      return true;
    });
    assert.equal(body.locked, false);
  });

  it("stops reading with the signal's reason when it is aborted", async () => {
    const source = openBody();
    source.write("{");
    const controller = new AbortController();
    const page = decodeAny(source.body, { ...trusting, signal: controller.signal });
    const reason = new Error("enough");
    controller.abort(reason);
    await assert.rejects(page, reason);
    assert.ok(source.cancelled);
    await assert.rejects(
      decodeAny(openBody().body, { ...trusting, signal: AbortSignal.abort(reason) }),
      reason,
    );
  });

  it("keeps no listener at the signal once it is over", async () => {
    const counting = new CountingSignal();
    const { signal } = counting;
    await decodeAny(bodyOf([bytes('{"metadata":{},"items":[]}')]), { ...trusting, signal });
    await assert.rejects(decodeAny(bodyOf([bytes("no JSON")]), { ...trusting, signal }), DecodeError);
    assert.equal(counting.listeners, 0);
  });

  it("reads a list that is longer than any text", async () => {
    // V8's longest string has 2^29 - 24 characters. What the items hold
    // is not kept, so nothing but the reading counts.
    const item = bytes(`${JSON.stringify({ metadata: { name: "a" }, data: "x".repeat(2 ** 20) })},`);
    // In the inner loop fewer, as it takes seconds.
    // More runs cannot make it longer: a list has a limit.
    const factor = Math.min(propertyOptions(1_000).numRuns / 1_000, 1);
    const count = Math.ceil(520 * factor);
    let left = count;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(bytes('{"kind":"ConfigMapList","metadata":{},"items":[')),
      pull(controller) {
        if (left-- > 0) return controller.enqueue(item);
        controller.enqueue(bytes('{"metadata":{"name":"last"}}]}'));
        controller.close();
      },
    }, { highWaterMark: 0 });
    let received = 0;
    const { items } = await decodeAny<string>(body, {
      ...trusting,
      onBytes: (count) => (received += count),
      intake: (item) => (item as { metadata: { name: string } }).metadata.name,
    });
    assert.ok(received > 2 ** 29 * factor, `${received} bytes`);
    assert.deepEqual([items.length, items[0], items[count]], [count + 1, "a", "last"]);
  });

  let looks = 0;
  const clocks = {
    "gives others a turn while a long list comes faster than it is read": { looksMs: 1, chunks: 50 },
    "gives others a turn where the clock does not advance while code runs": { looksMs: 0, chunks: 600 },
  };
  for (const [name, { looksMs, chunks }] of Object.entries(clocks)) {
    it(name, async () => {
      const item = bytes(`${JSON.stringify({ metadata: { name: "a" } })},`.repeat(500));
      let left = chunks;
      let isReading = true;
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(bytes('{"metadata":{},"items":[')),
        pull(controller) {
          if (left-- > 0) return controller.enqueue(item);
          controller.enqueue(bytes("1]}"));
          controller.close();
        },
      });
      let turns = 0;
      const tick = () => {
        turns++;
        if (isReading) nextTurn().then(tick);
      };
      nextTurn().then(tick);
      const clock = { ...realClock, monotonicNow: () => looksMs * looks++ };
      const { items } = await decodeAny<unknown>(body, { ...trusting, clock });
      isReading = false;
      assert.equal(items.length, 500 * chunks + 1);
      assert.ok(turns >= 5, `${turns} turns`);
    });
  }
});

describe("readText and readBody", () => {
  it("give the text of any chunks", async () => {
    const all = bytes("grün-€-😀");
    for (let i = 0; i <= all.length; i++) {
      assert.equal(await readText(bodyOf(splitAt(all, [i])), '"pods"'), "grün-€-😀");
    }
    assert.equal(await readText(bodyOf([bytes("a"), all.subarray(0, 3)]), '"pods"'), "agr\ufffd");
  });

  it("take as many bytes as they may, and refuse more", async () => {
    const read = async (maxBytes: number) => {
      const parts: (number | undefined)[] = [];
      const body = bodyOf([bytes("abc"), bytes("de")]);
      const limit = { maxBytes, hint: "ask for less" };
      await readBody(body, '"pods"', limit, (chunk) => parts.push(chunk?.length));
      return parts;
    };
    assert.deepEqual(await read(5), [3, 2]);
    await assert.rejects(
      read(4),
      (error) =>
        error instanceof DecodeError &&
        error.message === 'Cannot read the answer for "pods": it is longer than 4 bytes; ask for less',
    );
  });
});
