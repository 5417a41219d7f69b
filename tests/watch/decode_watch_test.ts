import assert from "node:assert/strict";
import fc from "fast-check";
import type { WatchItem } from "../../src/meta/list_watch.ts";
import { NetworkError } from "../../src/meta/request.ts";
import {
  decodeWatch,
  type DecodeWatchOptions,
  DEFAULT_MAX_FRAME_BYTES,
} from "../../src/watch/decode_watch.ts";
import { ObjectTextReader } from "../../src/text/object_text_reader.ts";
import { settle } from "../../src/util/clock.ts";
import { anyCharacter, propertyOptions } from "../property.ts";
import { suitesFor } from "../storages.ts";
import { bodyOf, byteBodyOf, bytes, openBody, splitAt } from "./bodies.ts";

type Item = WatchItem<unknown>;

const validate = (frame: unknown) => frame as Item;

const { describe, it, storage } = suitesFor(["texts, validated by their heads", "texts", "objects"]);

/** Objects as texts are opened where they are handed out, so that every test compares them too. */
function forms(): Partial<DecodeWatchOptions<unknown>> {
  if (storage() === "objects") return {};
  return {
    asText: {
      reader: new ObjectTextReader(),
      hold: (text) => JSON.parse(text),
      acceptsOrdinary: storage() !== "texts",
    },
  };
}

function decode(body: ReadableStream<Uint8Array>, options: Partial<DecodeWatchOptions<unknown>> = {}) {
  return decodeWatch<unknown>(body, { validate, ...forms(), ...options });
}

async function batchesOf(
  body: ReadableStream<Uint8Array>,
  options: Partial<DecodeWatchOptions<unknown>> = {},
) {
  const batches: Item[][] = [];
  for await (const batch of decode(body, options)) batches.push([...batch]);
  return batches;
}

async function itemsOf(body: ReadableStream<Uint8Array>, options: Partial<DecodeWatchOptions<unknown>> = {}) {
  return (await batchesOf(body, options)).flat();
}

const event = (name: string, type = "ADDED") => ({ type, object: { metadata: { name } } });
const line = (value: unknown) => `${JSON.stringify(value)}\n`;
const types = (items: readonly Item[]) => items.map((item) => item.type);

function decodingError(item: Item): string {
  assert.equal(item.type, "ERROR");
  const { object } = item as Extract<Item, { type: "ERROR" }>;
  assert.equal(object.code, 500);
  assert.equal(object.reason, "InternalError");
  const cause = object.details?.causes?.find((cause) => cause.reason === "ClientWatchDecoding");
  assert.ok(cause, "a cause ClientWatchDecoding");
  return cause.message ?? "";
}

// One, two, three and four bytes a character; white space around and between; a last frame without a newline.
const TEXT = `${line(event("a"))}\n\r\n  \t\r\n${line(event("grün-€-😀-名"))}${
  JSON.stringify(event("crlf"))
}\r\n\n${JSON.stringify(event("last ✓", "DELETED"))}`;
const EXPECTED = [event("a"), event("grün-€-😀-名"), event("crlf"), event("last ✓", "DELETED")];

describe("decodeWatch", () => {
  it("gives the same events wherever the text is split in two, in a plain and in a byte stream", async () => {
    const all = bytes(TEXT);
    for (let i = 0; i <= all.length; i++) {
      const chunks = splitAt(all, [i]);
      assert.deepEqual(await itemsOf(bodyOf(chunks)), EXPECTED, `split at ${i}`);
      assert.deepEqual(await itemsOf(byteBodyOf(chunks)), EXPECTED, `bytes, split at ${i}`);
    }
  });

  it("gives the same events wherever the text is split in three", async () => {
    const text = `${line(event("ü"))}${line(event("😀"))}`;
    const all = bytes(text);
    for (let i = 0; i <= all.length; i++) {
      for (let j = i; j <= all.length; j++) {
        assert.deepEqual(
          await itemsOf(bodyOf(splitAt(all, [i, j]))),
          [event("ü"), event("😀")],
          `${i}, ${j}`,
        );
      }
    }
  });

  it("gives the same events byte by byte", async () => {
    const chunks = [...bytes(TEXT)].map((byte) => Uint8Array.of(byte));
    assert.deepEqual(await itemsOf(bodyOf(chunks)), EXPECTED);
    assert.deepEqual(await itemsOf(byteBodyOf(chunks)), EXPECTED);
  });

  it("gives any events back as they were written, in any chunks", async () => {
    const anyEvent = fc.record({
      type: fc.constantFrom("ADDED", "MODIFIED", "DELETED", "BOOKMARK"),
      object: fc.dictionary(fc.string({ unit: anyCharacter }), fc.jsonValue({ stringUnit: anyCharacter })),
    });
    const separator = fc.constantFrom("\n", "\r\n", "\n\n", "\n \r\n");
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(anyEvent, separator), { maxLength: 6 }),
        fc.array(fc.nat(2000), { maxLength: 12 }),
        fc.boolean(),
        async (lines, cuts, asBytes) => {
          const all = bytes(lines.map(([value, end]) => JSON.stringify(value) + end).join(""));
          const chunks = splitAt(all, cuts.map((cut) => Math.min(cut, all.length)));
          const items = await itemsOf(asBytes ? byteBodyOf(chunks) : bodyOf(chunks));
          assert.deepEqual(items, lines.map(([value]) => JSON.parse(JSON.stringify(value))));
        },
      ),
      propertyOptions(300),
    );
  });

  it("never fails, whatever bytes come, and ends after the first bad frame", async () => {
    const noise = fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.constant(bytes(line(event("x")))),
      fc.constant(bytes("\n")),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(noise, { maxLength: 8 }), fc.nat(40), async (parts, limit) => {
        const items = await itemsOf(bodyOf(parts), { maxFrameBytes: limit + 1 });
        const firstError = items.findIndex((item) => item !== null && item?.type === "ERROR");
        if (firstError >= 0) assert.equal(firstError, items.length - 1);
      }),
      propertyOptions(300),
    );
  });

  it("makes one batch of what one chunk completes, and none of a chunk that completes nothing", async () => {
    const chunks = [
      bytes(line(event("a")) + line(event("b")) + '{"type":"ADD'),
      bytes('ED","object":'),
      bytes('{"metadata":{"name":"c"}}}\n' + line(event("d"))),
      bytes("\n\n"),
    ];
    assert.deepEqual(await batchesOf(bodyOf(chunks)), [[event("a"), event("b")], [event("c"), event("d")]]);
  });

  it("replaces bytes that are no UTF-8, as Go does", async () => {
    const broken = [...bytes('{"type":"ADDED","object":{"metadata":{"name":"a'), 0xff, ...bytes('b"}}}\n')];
    assert.deepEqual(await itemsOf(bodyOf([Uint8Array.from(broken)])), [event("a\ufffdb")]);
  });

  it("reports a frame that is no JSON as an ERROR event after the events before it, then ends and lets go", async () => {
    const source = openBody();
    source.write(line(event("a")) + "this is not json\n" + line(event("never")));
    const batches = await batchesOf(source.body);
    assert.equal(batches.length, 1);
    assert.deepEqual(types(batches[0]), ["ADDED", "ERROR"]);
    assert.match(decodingError(batches[0][1]), /unable to decode an event from the watch stream/);
    assert.ok(source.cancelled);
    assert.equal(source.body.locked, false);
  });

  it("takes a line for a frame: two events in one are no JSON", async () => {
    const items = await itemsOf(bodyOf([bytes(JSON.stringify(event("a")) + line(event("b")))]));
    assert.deepEqual(types(items), ["ERROR"]);
    decodingError(items[0]);
  });

  it("reports an unknown event type in the same way", async () => {
    const items = await itemsOf(
      bodyOf([bytes(line(event("a")) + line(event("b", "WEIRD")) + line(event("c")))]),
    );
    assert.deepEqual(types(items), ["ADDED", "ERROR"]);
    assert.match(decodingError(items[1]), /invalid watch event type: "WEIRD"/);
  });

  it("reports a frame that is no event in the same way: a list on one line, a value, an event without an object", async () => {
    const frames = [
      [
        '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}',
        /type: undefined/,
      ],
      ["null", /type: undefined/],
      ["[]", /type: undefined/],
      ["7", /type: undefined/],
      ['{"type":3,"object":{}}', /type: 3/],
      ['{"type":"ADDED"}', /ADDED event has no object/],
      ['{"type":"MODIFIED","object":null}', /MODIFIED event has no object/],
      ['{"type":"DELETED","object":"web-1"}', /DELETED event has no object/],
      ['{"type":"BOOKMARK","object":[]}', /BOOKMARK event has no object/],
      ['{"type":"ERROR"}', /ERROR event has no object/],
    ] as const;
    for (const [frame, detail] of frames) {
      for (const end of ["", `\n${line(event("never"))}`]) {
        const items = await itemsOf(bodyOf([bytes(line(event("a")) + frame + end)]));
        assert.deepEqual(types(items), ["ADDED", "ERROR"], frame);
        assert.match(decodingError(items[1]), detail);
      }
    }
  });

  it("reports a frame over the limit, however it is split, whole or not", async () => {
    const big = JSON.stringify(event("x".repeat(200)));
    const head = line(event("a"));
    for (const tail of ["", "\n", `\n${line(event("b"))}`]) {
      const all = bytes(head + big + tail);
      for (
        const cuts of [[], [10], [head.length], [head.length + 5], [head.length + 99, head.length + 101]]
      ) {
        const items = await itemsOf(bodyOf(splitAt(all, cuts)), { maxFrameBytes: 100 });
        assert.deepEqual(types(items), ["ADDED", "ERROR"], `cut at ${cuts}, then ${JSON.stringify(tail)}`);
        assert.match(decodingError(items[1]), /larger than 100 bytes/);
      }
    }
  });

  it("accepts a frame of just the limit", async () => {
    const text = JSON.stringify(event("just"));
    assert.equal(
      (await itemsOf(bodyOf([bytes(`${text}\n`)]), { maxFrameBytes: text.length }))[0].type,
      "ADDED",
    );
    assert.equal(
      (await itemsOf(bodyOf([bytes(`${text}\n`)]), { maxFrameBytes: text.length - 1 }))[0].type,
      "ERROR",
    );
  });

  it("accepts frames of 16 MiB by default", () => {
    assert.equal(DEFAULT_MAX_FRAME_BYTES, 16 * 1024 * 1024);
  });

  it("accepts a frame of just the limit whose newline comes later", async () => {
    const text = line(event("a"));
    const chunks = [bytes(text.slice(0, -1)), bytes("\n"), bytes(text)];
    const items = await itemsOf(bodyOf(chunks), { maxFrameBytes: text.length - 1 });
    assert.deepEqual(types(items), ["ADDED", "ADDED"]);
    const [refused] = await itemsOf(bodyOf(chunks), { maxFrameBytes: text.length - 2 });
    assert.match(decodingError(refused), /larger than/);
  });

  it("reads no further than its line, whatever was in its buffer before", async () => {
    const torn = `${line(event("a")).slice(0, -3)}\n`;
    const items = await itemsOf(bodyOf([bytes(line(event("aa"))), bytes(torn)]));
    assert.deepEqual(types(items), ["ADDED", "ERROR"]);
  });

  it("ends at a frame without an end as soon as that is too long, in however small pieces it comes", async () => {
    const pieces = Array.from({ length: 30 }, () => bytes("x".repeat(10)));
    const items = await itemsOf(bodyOf(pieces), { maxFrameBytes: 100 });
    assert.deepEqual(items.map(({ type }) => type), ["ERROR"]);
  });

  it("counts the length of a frame in bytes, however many characters those are and however they are split", async () => {
    for (const character of ["é", "€", "😀"]) {
      const text = JSON.stringify(event(character.repeat(20)));
      const all = bytes(`${text}\n`);
      const length = all.length - 1;
      assert.ok(length > text.length);
      for (const cuts of [[], [10], [length - 5, length - 1]]) {
        const chunks = splitAt(all, cuts);
        assert.equal((await itemsOf(bodyOf(chunks), { maxFrameBytes: length }))[0].type, "ADDED");
        assert.equal((await itemsOf(bodyOf(chunks), { maxFrameBytes: length - 1 }))[0].type, "ERROR");
      }
    }
  });

  it("counts the limit of each frame, not of what came before it", async () => {
    const text = line(event("a")).repeat(1000);
    const cuts = Array.from({ length: 70 }, (_, i) => i * 700);
    assert.equal((await itemsOf(bodyOf(splitAt(bytes(text), cuts)), { maxFrameBytes: 60 })).length, 1000);
  });

  it("refuses a limit that is no positive number, and a body that has another reader", () => {
    assert.throws(() => decode(bodyOf([]), { maxFrameBytes: 0 }), RangeError);
    assert.throws(
      () => decode(bodyOf([]), { maxFrameBytes: NaN }),
      /a maxFrameBytes of NaN: it must be a number of 1 or more/,
    );
    const body = bodyOf([]);
    body.getReader();
    assert.throws(() => decode(body), /it has another reader/);
  });

  it("drops a last frame that was cut short by a clean end", async () => {
    assert.deepEqual(await itemsOf(bodyOf([bytes(line(event("a")) + '{"type":"ADDED","ob')])), [event("a")]);
  });

  it("takes nothing at all for a watch without events", async () => {
    assert.deepEqual(await itemsOf(bodyOf([])), []);
  });

  it("throws a NetworkError when the connection breaks, after the events that came", async () => {
    const seen: Item[] = [];
    const reset = Object.assign(new TypeError("terminated"), {
      cause: Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }),
    });
    const body = bodyOf([bytes(line(event("a")) + '{"type":')], reset);
    await assert.rejects(async () => {
      for await (const batch of decode(body, { subject: '"pods"' })) seen.push(...batch);
    }, (error) => {
      assert.ok(error instanceof NetworkError);
      assert.equal(error.reason, "ConnectionReset");
      assert.equal(error.message, 'Cannot read the watch of "pods": it was cut off: read ECONNRESET');
      assert.equal(error.cause, reset);
      return true;
    });
    assert.deepEqual(seen, [event("a")]);
    assert.equal(body.locked, false);
  });

  it("says so when a chunk is no bytes", async () => {
    const body = bodyOf(["text" as unknown as Uint8Array]);
    await assert.rejects(itemsOf(body), /a chunk is string, not bytes/);
  });

  it("cancels the body and lets go of it when the loop is left", async () => {
    const source = openBody();
    source.write(line(event("a")));
    for await (const _batch of decode(source.body)) break;
    assert.ok(source.cancelled);
    assert.equal(source.body.locked, false);
  });

  it("ends a wait for the next batch when return() is called meanwhile", async () => {
    const source = openBody();
    const iterator = decode(source.body)[Symbol.asyncIterator]();
    const waiting = iterator.next();
    await iterator.return?.();
    assert.deepEqual(await waiting, { done: true, value: undefined });
    assert.deepEqual(await iterator.next(), { done: true, value: undefined });
    assert.ok(source.cancelled);
  });

  it("ends a wait with the signal's reason, once, and cancels the body, when the signal is aborted", async () => {
    for (const asBytes of [false, true]) {
      let cancelled: unknown;
      const stream = asBytes
        ? new ReadableStream({ type: "bytes", cancel: (reason) => void (cancelled = reason) })
        : new ReadableStream({ cancel: (reason) => void (cancelled = reason) });
      const controller = new AbortController();
      const iterator = decode(stream, { signal: controller.signal })[Symbol.asyncIterator]();
      const waiting = iterator.next();
      const reason = new Error("enough");
      controller.abort(reason);
      await assert.rejects(waiting, reason);
      assert.equal(cancelled, reason);
      assert.equal(stream.locked, false);
      assert.deepEqual(await iterator.next(), { done: true, value: undefined });
    }
  });

  it("hands out no event that came in the turn in which the reader left, or the signal was aborted", async () => {
    const reason = new Error("enough");
    const controller = new AbortController();
    const aborted = openBody();
    let received = 0;
    const onBytes = (bytes: number) => received += bytes;
    const items = decode(aborted.body, { signal: controller.signal, onBytes })[Symbol.asyncIterator]();
    const waiting = items.next();
    await settle();
    aborted.write(line(event("late")));
    controller.abort(reason);
    await assert.rejects(waiting, reason);
    const left = openBody();
    const iterator = decode(left.body, { onBytes })[Symbol.asyncIterator]();
    const last = iterator.next();
    await settle();
    left.write(line(event("late")));
    await iterator.return?.();
    assert.deepEqual(await last, { done: true, value: undefined });
    assert.equal(received, 0);
  });

  it("throws the reason when the signal was aborted before, without reading", async () => {
    const source = openBody();
    const reason = new Error("too late");
    const items = itemsOf(source.body, { signal: AbortSignal.abort(reason) });
    await assert.rejects(items, reason);
    assert.ok(source.cancelled);
  });

  it("throws no reason of an abort when the reader has left since", async () => {
    const controller = new AbortController();
    const iterator = decode(openBody().body, { signal: controller.signal })[Symbol.asyncIterator]();
    controller.abort(new Error("enough"));
    assert.deepEqual(await iterator.return?.(), { done: true, value: undefined });
    assert.deepEqual(await iterator.next(), { done: true, value: undefined });
  });

  it("counts the bytes of every chunk, also of one that completes nothing", async () => {
    const text = bytes(line(event("a")));
    const counts: number[] = [];
    await itemsOf(bodyOf(splitAt(text, [5])), { onBytes: (count) => void counts.push(count) });
    assert.deepEqual(counts, [5, text.length - 5]);
  });

  it("names the resource, if it has a name, when the connection breaks", async () => {
    const broken = () => bodyOf([], new Error("connection reset"));
    await assert.rejects(
      itemsOf(broken()),
      /^NetworkError: Cannot read the watch of the resource: it was cut/,
    );
    await assert.rejects(
      itemsOf(broken(), { subject: '"pods"' }),
      /Cannot read the watch of "pods": it was cut/,
    );
  });

  it("keeps no listener at the signal once it is over", async () => {
    const controller = new AbortController();
    let listeners = 0;
    const { signal } = controller;
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (...args: unknown[]) => {
      listeners++;
      addEventListener.apply(signal, args as Parameters<typeof addEventListener>);
    };
    signal.removeEventListener = (...args: unknown[]) => {
      listeners--;
      removeEventListener.apply(signal, args as Parameters<typeof removeEventListener>);
    };
    const stream = decode(bodyOf([bytes(line(event("a")))]), { signal });
    assert.equal(listeners, 1);
    for await (const _batch of stream);
    assert.equal(listeners, 0);
  });

  it("delivers what came before, then throws what the validator threw", async () => {
    const bug = new TypeError("asynchronous schema");
    const source = openBody();
    source.write(line(event("a")) + line(event("b")));
    const seen: Item[] = [];
    await assert.rejects(async () => {
      const stream = decode(source.body, {
        validate: (frame) => {
          if ((frame as typeof EXPECTED[0]).object.metadata.name === "b") throw bug;
          return frame as Item;
        },
        ...(storage() !== "objects" && {
          asText: {
            reader: new ObjectTextReader(),
            hold: (text) => JSON.parse(text),
            acceptsOrdinary: false,
          },
        }),
      });
      for await (const batch of stream) seen.push(...batch);
    }, bug);
    assert.deepEqual(seen, [event("a")]);
    assert.ok(source.cancelled);
  });

  it("hands out the report of an object that is quarantined, in its place", async () => {
    const quarantined: Item = { type: "QUARANTINED", quarantined: { reason: "it is odd", path: "object" } };
    const odd = event("odd");
    Object.assign(odd.object, { kind: "Table" });
    const items = await itemsOf(bodyOf([bytes(line(odd) + line(event("a")))]), {
      validate: (frame) =>
        (frame as typeof EXPECTED[0]).object.metadata.name === "odd" ? quarantined : frame as Item,
    });
    assert.deepEqual(items, [quarantined, event("a")]);
  });

  it("validates objects with odd heads, and the others unless an ordinary head is enough", async () => {
    const validated: unknown[] = [];
    const odd = event("odd");
    Object.assign(odd.object, { kind: "Table" });
    const items = decode(bodyOf([bytes(line(event("a")) + line(odd))]), {
      validate: (frame) => {
        validated.push((frame as typeof EXPECTED[0]).object.metadata.name);
        return frame as Item;
      },
    });
    for await (const _batch of items);
    assert.deepEqual(validated, storage() === "texts, validated by their heads" ? ["odd"] : ["a", "odd"]);
  });

  it("reads no more of the body than is requested", async () => {
    let pulled = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled++;
        controller.enqueue(bytes(line(event(`pod-${pulled}`))));
      },
    }, { highWaterMark: 0 });
    const iterator = decode(body)[Symbol.asyncIterator]();
    await iterator.next();
    await iterator.next();
    assert.equal(pulled, 2);
    await iterator.return?.();
  });

  it("reads a byte stream into a buffer of its own, of which no event remembers anything", async () => {
    let handed = 0;
    const lines = Array.from({ length: 50 }, (_, i) => line(event(`pod-${i}`.padEnd(i * 10, "x"))));
    const newBody = () =>
      new ReadableStream({
        type: "bytes",
        pull(controller) {
          const view = controller.byobRequest?.view;
          assert.ok(view, "a buffer to read into");
          const next = lines[handed++];
          if (next === undefined) {
            controller.close();
            return controller.byobRequest?.respond(0);
          }
          new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset).set(bytes(next));
          controller.byobRequest.respond(next.length);
        },
      });
    const items = await runningOn("Deno/2.9.6", () => itemsOf(newBody()));
    assert.deepEqual(items.map((item) => line(item)), lines);
  });

  it("reads a byte stream chunk by chunk on Node, and frees each when it has been read", async () => {
    const chunks: Uint8Array[] = [];
    const lines = Array.from({ length: 50 }, (_, i) => line(event(`pod-${i}`)));
    const body = byteBodyOf(lines.map((text) => bytes(text)));
    const getReader = body.getReader.bind(body) as (
      options?: unknown,
    ) => ReadableStreamDefaultReader<Uint8Array>;
    body.getReader = ((options?: unknown) => {
      const reader = getReader(options);
      if (options !== undefined) return reader;
      return {
        read: async () => {
          const result = await reader.read();
          if (result.value !== undefined) chunks.push(result.value);
          return result;
        },
        cancel: (reason: unknown) => reader.cancel(reason),
        releaseLock: () => reader.releaseLock(),
      };
    }) as typeof body.getReader;
    const items = await runningOn("Node.js/24", () => itemsOf(body));
    assert.deepEqual(items.map((item) => line(item)), lines);
    assert.deepEqual(chunks.map(({ byteLength }) => byteLength), lines.map(() => 0));
  });

  it("leaves chunks alone that may belong to another owner", async () => {
    const chunk = bytes(line(event("pod")));
    const items = await runningOn("Node.js/24", () => itemsOf(bodyOf([chunk, chunk, chunk])));
    assert.equal(items.length, 3);
    assert.ok(chunk.byteLength > 0);
  });

  it("takes time in proportion to a frame that comes in many pieces", async () => {
    const text = line(event("x".repeat(2_000_000)));
    const all = bytes(text);
    const chunks = splitAt(all, Array.from({ length: 20_000 }, (_, i) => i * 100));
    const [item] = await itemsOf(bodyOf(chunks));
    assert.equal(line(item), text); // a copy per piece would be 20 GB
  });
});

/** Runs something as if the runtime were another, as far as it says what it is. */
async function runningOn<R>(userAgent: string, run: () => Promise<R>): Promise<R> {
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { value: { userAgent }, configurable: true });
  try {
    return await run();
  } finally {
    if (before === undefined) delete (globalThis as { navigator?: unknown }).navigator;
    else Object.defineProperty(globalThis, "navigator", before);
  }
}
