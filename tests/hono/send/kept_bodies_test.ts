import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeClock } from "@listwatch/cache/testing";
import { Readers } from "../../../src/hono/request/readers.ts";
import { type BodyOf, type BodyReader, ListBodies } from "../../../src/hono/send/kept_bodies.ts";
import { GZIP_LEAST_BYTES } from "../../../src/hono/send/gzip.ts";
import type { ListText } from "../../../src/hono/send/view_text.ts";
import type { Pacer } from "../../../src/util/turns.ts";

const pacer = { isDue: false, rest: () => Promise.resolve(), spendText: () => {} } as unknown as Pacer;

/** A list of pieces of ten bytes, which are one digit each; the list itself takes no bytes. */
class TenByteText {
  readonly resourceVersion = "10";
  readonly isLasting = true;
  readonly weight = 1;
  readonly ownBytes = 0;
  /** How long its pieces were to be. */
  readonly lengths: number[] = [];
  readonly #count: number;
  next: number;

  constructor(count: number, from = 0) {
    this.#count = count;
    this.next = from;
  }

  get isDone(): boolean {
    return this.next === this.#count;
  }

  get progress(): number {
    return this.next / this.#count;
  }

  head(): string {
    return "";
  }

  piece(length: number): string | undefined {
    this.lengths.push(length);
    return this.isDone ? undefined : String(this.next++).repeat(10);
  }

  rest(from: number = this.next): TenByteText {
    return new TenByteText(this.#count, from);
  }
}

/** The bodies of one content, with a hundred bytes for all of them. */
function newBodies({ maxBytes = 16_000, maxReaderBytes = 100 } = {}) {
  const clock = new FakeClock();
  const readers = new Readers({
    maxRequests: 9,
    maxWatches: 9,
    maxWatchesPerClient: 9,
    maxReaderBytes,
    clock,
  });
  const bodies = new ListBodies({ readers, maxBytes, clock });
  const version = { changes: 0, rewrites: 0, since: "10" };
  const state = { revision: 0, resourceVersion: "10", version };
  const content = {
    log: {
      get window() {
        return state;
      },
    },
    versions: { versionOf: () => state.version },
  };
  const ofName = (name: string) => ({ content, namespace: "", name, version: state.version, revision: 0 });
  const add = (name: string, pieces: number, more: Partial<Pick<ListText, "head" | "ownBytes">> = {}) => {
    const text = Object.assign(new TenByteText(pieces), more);
    const body = bodies.add(ofName(name) as unknown as BodyOf, text as unknown as ListText);
    const reader = body.open(pacer);
    const made = reader.pieces(readers);
    const decoder = new TextDecoder();
    /** Reads so many pieces; returns their digits. */
    const read = (count: number) => {
      let digits = "";
      for (let i = 0; i < count; i++) {
        const { value, done } = made.next();
        if (done) return `${digits}.`;
        const piece = decoder.decode(value);
        digits += piece[0];
        assert.equal(piece, piece[0].repeat(10));
      }
      return digits;
    };
    return { text, body, reader, read };
  };
  const get = (name: string) => bodies.get(ofName(name) as unknown as BodyOf);
  /** Whether others could have so many bytes. */
  const isFree = (bytes: number) => {
    if (!readers.keepSpare(bytes)) return false;
    readers.unkeep(bytes);
    return true;
  };
  return { bodies, readers, state, clock, add, get, isFree };
}

const closeAll = (...all: readonly { readonly reader: BodyReader }[]) =>
  all.forEach(({ reader }) => reader.close());

describe("ListBodies.take", () => {
  it("drops the bodies that were used least recently, and never the one that grows", () => {
    const { bodies, add, get } = newBodies();
    const [first, second, third] = ["first", "second", "third"].map((name) => add(name, 9));
    assert.equal(first.read(4), "0123");
    assert.equal(second.read(3), "012");
    assert.equal(third.read(3), "012");
    closeAll(second, third);
    // It was used least recently itself.
    assert.equal(first.read(1), "4");
    assert.deepEqual(["first", "second", "third"].map((name) => get(name) !== undefined), [
      true,
      false,
      true,
    ]);
    assert.equal(bodies.bytes, 80);
    assert.equal(first.read(5), "5678.");
    assert.equal(get("third"), undefined);
    assert.equal(bodies.bytes, 90);
    // It grows no longer, and can be dropped as any other.
    closeAll(first);
    assert.equal(bodies.dropSome(), true);
    assert.deepEqual([get("first"), bodies.bytes, bodies.dropSome()], [undefined, 0, false]);
  });

  it("takes none of the one that grows either where that was left, and another one is left for it", () => {
    const { bodies, add } = newBodies({ maxBytes: 160 });
    const [left, kept] = [add("left", 9), add("kept", 9)];
    assert.equal(left.read(4), "0123");
    left.body.drop();
    assert.equal(kept.read(6), "012345");
    assert.equal(left.read(1), "4");
    assert.deepEqual([left, kept].map(({ body }) => body.chunkBytes), [50, 0]);
    assert.deepEqual([bodies.kept.size, bodies.bytes], [0, 50]);
    assert.deepEqual([left.read(9), kept.read(9)], ["5678.", "678."]);
    closeAll(left, kept);
    assert.equal(bodies.bytes, 0);
  });

  it("takes the bytes of bodies that are left, the oldest first, and none of the one that grows", () => {
    const { bodies, add, isFree } = newBodies();
    const [oldest, older, newest] = [add("oldest", 9), add("older", 9), add("newest", 9)];
    assert.equal(oldest.read(4), "0123");
    assert.equal(older.read(3), "012");
    assert.equal(newest.read(3), "012");
    for (const { body } of [oldest, older, newest]) body.drop();
    assert.deepEqual([bodies.kept.size, bodies.bytes], [0, 100]);
    assert.equal(oldest.read(1), "4");
    assert.deepEqual([oldest, older, newest].map(({ body }) => body.chunkBytes), [50, 0, 30]);
    assert.equal(bodies.bytes, 80);
    assert.ok(isFree(20));
    // Each reader has its list to the end.
    assert.equal(older.read(9), "345678.");
    assert.equal(oldest.read(9), "5678.");
    assert.equal(newest.read(9), "345678.");
    closeAll(oldest, older, newest);
    assert.deepEqual([bodies.bytes, bodies.dropSome(), isFree(100)], [0, false, true]);
  });

  it("takes no bytes of what others keep, which takes longer to make", () => {
    const { bodies, readers, add } = newBodies();
    let kept = 50;
    const dropSome = () => {
      readers.unkeep(kept);
      kept = 0;
      return true;
    };
    readers.addKeeper({ kept: { size: 1 }, dropSome });
    assert.ok(readers.keep(kept));
    const { read, reader } = add("one", 9);
    assert.equal(read(9), "012345678");
    // A reader that makes the rest on its own needs nothing of the body.
    assert.deepEqual([kept, bodies.bytes], [50, 0]);
    reader.close();
  });

  it("keeps nothing of a list that will have more than all bytes", () => {
    const { bodies, add, get } = newBodies();
    const [small, large] = [add("small", 9), add("large", 11)];
    assert.deepEqual([small.read(1), large.read(1)], ["0", "0"]);
    assert.equal(bodies.bytes, 10);
    assert.deepEqual([get("small"), get("large")], [small.body, undefined]);
    closeAll(small, large);
  });

  it("ends without effect where all that is left has no bytes", () => {
    const { bodies, readers, add } = newBodies();
    const { body, read, reader } = add("one", 9);
    assert.equal(read(3), "012");
    body.drop();
    assert.equal(bodies.dropSome(), true);
    assert.deepEqual([body.chunkBytes, bodies.bytes, bodies.dropSome()], [0, 0, false]);
    assert.equal(readers.keep(101), false);
    assert.equal(read(9), "345678.");
    reader.close();
  });
});

describe("ListBodies, of bodies that are read and no longer kept,", () => {
  it("releases the oldest while they have more than a sixteenth of all bytes", () => {
    const { bodies, add } = newBodies({ maxBytes: 16 * 50 });
    const [first, second, third] = ["first", "second", "third"].map((name) => add(name, 9));
    const bytes = () => [first, second, third].map(({ body }) => body.chunkBytes);
    first.read(2);
    second.read(3);
    for (const { body } of [first, second]) body.drop();
    assert.deepEqual(bytes(), [20, 30, 0]);
    third.read(1);
    third.body.drop();
    assert.deepEqual(bytes(), [0, 30, 10]);
    // What grows is released itself only for others.
    assert.equal(third.read(1), "1");
    assert.deepEqual(bytes(), [0, 30, 20]);
    assert.equal(third.read(1), "2");
    assert.deepEqual(bytes(), [0, 0, 30]);
    assert.equal(third.read(3), "345");
    assert.deepEqual(bytes(), [0, 0, 60]);
    assert.equal(bodies.bytes, 60);
    closeAll(first, second, third);
    assert.deepEqual([bodies.bytes, bodies.dropSome()], [0, false]);
  });
});

describe("ListBodies, of bodies that are dropped,", () => {
  it("counts none without readers among those that are left", () => {
    const { bodies, add } = newBodies({ maxBytes: 16 * 50 });
    const [left, unread] = [add("left", 9), add("unread", 9)];
    left.read(3);
    unread.read(3);
    left.body.drop();
    closeAll(unread);
    unread.body.drop();
    assert.deepEqual([left.body.chunkBytes, bodies.bytes], [30, 30]);
    closeAll(left);
  });

  it("frees the pieces, and what the list itself takes once its readers have ended", () => {
    const { bodies, add } = newBodies();
    const { body, reader, read } = add("one", 9, { ownBytes: 5 });
    read(3);
    body.drop();
    assert.equal(bodies.bytes, 35);
    body.release();
    assert.equal(bodies.bytes, 5);
    reader.close();
    assert.equal(bodies.bytes, 0);
  });

  it("knows a reader that has ended twice from another one", () => {
    const { add, bodies } = newBodies();
    const [first, second] = [add("one", 9), add("one", 9)];
    first.read(3);
    closeAll(first, first);
    first.body.drop();
    assert.deepEqual([first.body.isRead, bodies.bytes], [true, 30]);
    closeAll(second);
    assert.equal(bodies.bytes, 0);
  });
});

describe("ListBodies.alone", () => {
  it("makes pieces of 64 KiB, and keeps none once the list is worth compressing", () => {
    const { bodies, readers } = newBodies({ maxReaderBytes: 2 ** 30 });
    const text = {
      ...new TenByteText(9),
      head: () => "",
      piece: (length: number) => (text.lengths.push(length), "x".repeat(length)),
      rest: () => ({ piece: () => undefined }),
    };
    const reader = bodies.alone(text as unknown as ListText).open(pacer);
    const pieces = reader.pieces(readers);
    const bytes = [1, 2, 3].map(() => {
      pieces.next();
      return bodies.bytes;
    });
    assert.deepEqual([text.lengths, bytes], [[2 ** 16, 2 ** 16], [2 ** 16, 2 ** 17, 0]]);
    reader.close();
  });
});

describe("BodyReader", () => {
  it("makes smaller pieces where there are few bytes for all readers", () => {
    const lengths = [2 ** 30, 100].map((maxReaderBytes) => {
      const { text, reader, read } = newBodies({ maxReaderBytes }).add("one", 9);
      read(2);
      reader.close();
      return text.lengths;
    });
    assert.deepEqual(lengths, [[2 ** 16, 2 ** 18], [2 ** 16, 2 ** 16]]);
  });

  it("has the whole list at once, up to a number of bytes", () => {
    const { add } = newBodies();
    const { reader } = add("one", 1);
    assert.deepEqual([9, 10].map((most) => reader.whole(most)?.byteLength), [undefined, 10]);
  });

  it("takes a list that does not fit for a large one", async () => {
    const { add } = newBodies();
    const [small, large] = [add("small", 9), add("large", 11)];
    assert.deepEqual([await small.reader.isLarge(), await large.reader.isLarge()], [false, true]);
    closeAll(small, large);
  });

  it("compresses the list once there is room for it, which is work for its reader", async () => {
    const { add, readers } = newBodies();
    const { body } = add("one", 2);
    let spent = 0;
    const reader = body.open(
      { ...pacer, spendText: (length: number) => spent += length } as unknown as Pacer,
    );
    const other = readers.enter("a")!;
    assert.ok(other.take(75));
    assert.equal(await reader.gzipped(), undefined);
    other.give(75);
    spent = 0;
    assert.notEqual(await reader.gzipped(), undefined);
    assert.equal(spent, 20);
    reader.close();
  });

  it("waits two seconds for another one that compresses the list", async () => {
    const { add, clock } = newBodies();
    const { body, reader } = add("one", 2);
    const stuck = body.open({ ...pacer, isDue: true, rest: () => new Promise(() => {}) } as unknown as Pacer);
    stuck.gzipped();
    let answer: unknown = "none yet";
    const asked = reader.gzipped().then((chunks) => answer = chunks);
    await clock.advance(1_999);
    assert.equal(answer, "none yet");
    await clock.advance(1);
    await asked;
    assert.equal(answer, undefined);
    stuck.close();
    reader.close();
  });

  it("counts the head of a list that is large", async () => {
    const { add } = newBodies();
    const of = async (length: number) => {
      const { reader } = add(`with ${length}`, 1, { head: () => "h".repeat(length) });
      const isLarge = await reader.isLarge();
      reader.close();
      return isLarge;
    };
    assert.deepEqual(await Promise.all([11, 10].map((left) => of(GZIP_LEAST_BYTES - left))), [false, true]);
  });
});

describe("ListBodies.dropUnused", () => {
  it("drops what was not used for 10 s, or is not current", async () => {
    const { bodies, state, clock, add, get } = newBodies();
    const [first, second] = ["first", "second"].map((name) => add(name, 2));
    closeAll(first, second);
    await clock.advance(5_000);
    assert.equal(get("second"), second.body);
    await clock.advance(4_999);
    bodies.dropUnused();
    assert.equal(bodies.kept.size, 2);
    await clock.advance(1);
    bodies.dropUnused();
    assert.deepEqual([...bodies.kept], [second.body]);
    // Another revision, in which another namespace has changed.
    state.revision = 1;
    bodies.dropUnused();
    assert.equal(bodies.kept.size, 1);
    state.revision = 2;
    state.version = { ...state.version, changes: 1 };
    bodies.dropUnused();
    assert.equal(bodies.kept.size, 0);
  });
});

describe("ListBodies.add", () => {
  it("keeps the body of the newest content, and gives the known one of the same", () => {
    const { bodies, state, add, get } = newBodies();
    const first = add("one", 2);
    assert.equal(add("one", 2).body, first.body);
    state.revision = 1;
    state.version = { ...state.version, rewrites: 1 };
    assert.equal(get("one"), undefined);
    const second = add("one", 2);
    assert.notEqual(second.body, first.body);
    assert.equal(get("one"), second.body);
    assert.deepEqual([...bodies.kept], [second.body]);
  });
});
