import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { clientAddress, Readers } from "../../../src/hono/request/readers.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { realClock, settle } from "../../../src/util/clock.ts";

/** Readers with a hundred bytes, and one that keeps pieces of ten for the next ones. */
function newReaders(kept: number) {
  const readers = new Readers({
    maxRequests: 9,
    maxWatches: 9,
    maxWatchesPerClient: 9,
    maxReaderBytes: 100,
    clock: realClock,
  });
  let pieces = 0;
  readers.addKeeper({
    kept: {
      get size() {
        return pieces;
      },
    },
    dropSome: () => {
      if (pieces === 0) return false;
      pieces--;
      readers.unkeep(10);
      return true;
    },
  });
  for (; pieces < kept; pieces++) assert.ok(readers.keep(10));
  return { readers, pieces: () => pieces };
}

describe("Readers.keep", () => {
  it("drops what was kept before, as much as is needed and no more", () => {
    const { readers, pieces } = newReaders(9);
    assert.ok(readers.keep(10), "the last that are free");
    assert.equal(pieces(), 9);
    assert.ok(readers.keep(25));
    assert.equal(pieces(), 6);
  });

  it("drops nothing for what will not fit in the end", () => {
    const { readers, pieces } = newReaders(9);
    assert.equal(readers.keep(20, 101), false);
    assert.equal(readers.keep(101), false);
    assert.equal(pieces(), 9);
  });

  it("counts nothing where what is kept cannot be dropped", () => {
    const { readers } = newReaders(0);
    assert.ok(readers.keep(95));
    assert.equal(readers.keep(10), false);
    assert.ok(readers.keep(5), "they are free");
  });

  it("takes no bytes of those that are held for readers", () => {
    const { readers, pieces } = newReaders(3);
    const reader = readers.enter("a")!;
    assert.ok(reader.take(70));
    assert.equal(readers.keep(31), false);
    assert.equal(pieces(), 3);
    assert.ok(readers.keep(30));
    assert.equal(pieces(), 0);
    reader.answered(undefined);
    assert.deepEqual([readers.heldBytes, readers.count], [0, 0]);
    assert.ok(readers.keep(70));
  });
});

describe("Readers, the lengths of pieces,", () => {
  it("are larger for a list that readers share", () => {
    const { watchPieceLength, listPieceLength, sharedListPieceLength } = new Readers({
      maxRequests: 9,
      maxWatches: 9,
      maxWatchesPerClient: 9,
      maxReaderBytes: 2 ** 26,
      clock: realClock,
    });
    assert.deepEqual([watchPieceLength, listPieceLength, sharedListPieceLength], [2 ** 16, 2 ** 16, 2 ** 18]);
  });
});

describe("Readers.keepSpare", () => {
  it("drops nothing", () => {
    const { readers, pieces } = newReaders(9);
    assert.equal(readers.keepSpare(11), false);
    assert.ok(readers.keepSpare(10));
    assert.equal(pieces(), 9);
  });
});

describe("Readers.hasSpare", () => {
  it("is so while less than a quarter of all bytes is held", () => {
    const { readers } = newReaders(3);
    const reader = readers.enter("a")!;
    assert.ok(reader.take(24));
    assert.equal(readers.hasSpare, true);
    assert.ok(reader.take(1));
    assert.equal(readers.hasSpare, false);
  });

  it("and keepSpare count what is kept so", () => {
    const { readers } = newReaders(0);
    assert.ok(readers.keepSpare(60));
    assert.equal(readers.keepSpare(41), false);
    readers.unkeep(60);
    assert.ok(readers.keepSpare(100));
  });
});

describe("Readers.enter", () => {
  /** The further requests of a client that are admitted, and stay. */
  const more = (readers: Readers, client: string | undefined) => {
    const all = [];
    for (let reader; (reader = readers.enter(client)) !== undefined;) all.push(reader);
    return all;
  };

  it("gives a client as many places as are still free, and has back each that it has left", () => {
    const { readers } = newReaders(0);
    const first = more(readers, "a");
    assert.equal(first.length, 5);
    for (const reader of first.slice(3)) reader.answered(undefined);
    assert.equal(readers.count, 3);
    assert.equal(more(readers, "a").length, 2);
    assert.equal(more(readers, undefined).length, 4);
    assert.equal(readers.count, 9);
  });

  it("counts a request until its answer is sent, or will not be sent any more", async () => {
    const { readers } = newReaders(0);
    const once = () => {};
    const left = { then: (_: unknown, onLeft: () => void) => onLeft() };
    const cases: readonly (readonly [env: unknown, count: number])[] = [
      [{ outgoing: { once } }, 1],
      [{ outgoing: { once, closed: true } }, 1],
      [{ outgoing: { once, destroyed: true } }, 1],
      [{ completed: new Promise(() => {}) }, 2],
      [{ completed: left }, 2],
      [undefined, 2],
    ];
    for (const [env, count] of cases) {
      readers.enter(undefined)!.answered(env);
      await settle();
      assert.equal(readers.count, count);
    }
  });

  it("counts watches by themselves, and lets in none once the server drains", () => {
    const { readers } = newReaders(0);
    const [watch, request, late] = [1, 2, 3].map(() => readers.enter("a")!);
    assert.equal(watch.identify("a", { isWatch: true }), true);
    assert.equal(request.identify("a", { isWatch: false }), true);
    assert.equal(readers.count, 3);
    const stopped: string[] = [];
    const open = (name: string, isWhole: boolean) =>
      readers.watches.add({ user: undefined, isWhole, stop: () => void stopped.push(name) });
    open("a watch", false);
    open("a whole answer", true);
    assert.equal(readers.isDraining, false);
    readers.drain();
    assert.deepEqual([readers.isDraining, stopped], [true, ["a watch"]]);
    assert.equal(late.identify("a", { isWatch: true }), false);
    for (const reader of [watch, request, late]) reader.answered(undefined);
    assert.equal(readers.count, 0);
  });
});

describe("Reader.take", () => {
  it("drops what is kept before it is refused, and before it ends others", () => {
    const { readers, pieces } = newReaders(9);
    const [a, b] = ["a", "b"].map((client) => readers.enter(client)!);
    assert.ok(a.take(50));
    assert.equal(pieces(), 5);
    assert.ok(b.take(10));
    assert.equal(pieces(), 4);
    assert.equal(b.take(41), false);
    assert.deepEqual([a.heldBytes, b.heldBytes, pieces()], [50, 10, 0]);
  });

  it("ends the answer of a client that has more than twice as much, and what is ended takes nothing more", () => {
    const { readers } = newReaders(0);
    const [a, b, c] = ["a", "b", "c"].map((client) => readers.enter(client)!);
    const ended: string[] = [];
    a.onSpent = () => ended.push("a");
    b.onSpent = () => ended.push("b");
    assert.ok(a.take(45) && b.take(40));
    assert.equal(c.take(23), false);
    assert.deepEqual(ended, []);
    assert.ok(c.take(22));
    assert.deepEqual(ended, ["a"]);
    assert.equal(a.take(1), false);
    assert.deepEqual([a.heldBytes, b.heldBytes, c.heldBytes], [0, 40, 22]);
  });
});

describe("Reader.take, where all bytes are spent,", () => {
  /** Readers of clients, with the bytes that are held for each of them. */
  const holding = (maxReaderBytes: number, of: readonly (readonly [client: string, bytes: number])[]) => {
    const limits = { maxRequests: 9_999, maxWatches: 9, maxWatchesPerClient: 9, maxReaderBytes };
    const readers = new Readers({ ...limits, clock: realClock });
    const all = of.map(([client, bytes]) => {
      const reader = readers.enter(client)!;
      assert.ok(reader.take(bytes));
      return reader;
    });
    return { readers, all, held: () => all.map(({ heldBytes }) => heldBytes) };
  };
  const many = (count: number) => Array.from({ length: count }, () => ["b", 100] as const);

  it("frees a sixty-fourth of them", () => {
    const { readers, all: [reader] } = holding(6_400, [["a", 0], ...many(64)]);
    assert.ok(reader.take(50));
    assert.equal(readers.heldBytes, 6_250);
  });

  it("ends no client that has twice as much or less, counting what the one that wants more has", () => {
    for (const [most, has] of [[160, 100], [190, 130]] as const) {
      const { all: [reader], held } = holding(most, [["a", 60], ["b", has]]);
      assert.equal(reader.take(20), false);
      assert.deepEqual(held(), [60, has]);
    }
    const { all: [reader], held } = holding(130, [["a", 30], ["b", 100]]);
    assert.equal(reader.take(20), false, "exactly twice as much");
    assert.deepEqual(held(), [30, 100]);
  });

  it("ends an answer of the same client, if that has more than twice as much", () => {
    const { all: [reader], held } = holding(100, [["a", 30], ["a", 60]]);
    assert.equal(reader.take(20), false);
    assert.deepEqual(held(), [30, 60]);
    const more = holding(100, [["a", 10], ["a", 80]]);
    assert.equal(more.all[0].take(20), true);
    assert.deepEqual(more.held(), [30, 0]);
  });

  it("uses the last free ones where no other client has much more", () => {
    const { readers, all: [reader] } = holding(6_400, [["a", 2_050], ...many(43)]);
    assert.ok(reader.take(60));
    assert.equal(readers.heldBytes, 6_310);
  });

  it("belongs to no account once it has given all back", () => {
    const { all: [reader] } = holding(100, [["a", 60]]);
    reader.give(100);
    assert.deepEqual([reader.heldBytes, reader.account], [0, undefined]);
  });
});

describe("Readers.enter", () => {
  it("looks for what is unused among few at each request, and among many once a second", async () => {
    const clock = new FakeClock();
    const limits = { maxRequests: 9_999, maxWatches: 9, maxWatchesPerClient: 9, maxReaderBytes: 100 };
    const readers = new Readers({ ...limits, clock });
    const looks = [0, 0];
    [16, 17].forEach((size, i) =>
      readers.addKeeper({ kept: { size }, dropUnused: () => looks[i]++, dropSome: () => false })
    );
    for (let i = 0; i < 1_000; i++) readers.enter("a client");
    assert.deepEqual(looks, [1_000, 1]);
    await clock.advance(1_000);
    readers.enter("a client");
    assert.deepEqual(looks, [1_001, 2]);
  });
});

describe("clientAddress", () => {
  it("is that of Bun's server, the IPv4 one on a socket of IPv6, and of IPv6 the network of 64 bits", () => {
    class Server {
      readonly #address: string;
      constructor(address: string) {
        this.#address = address;
      }
      requestIP() {
        return { address: this.#address };
      }
    }
    const cases = {
      "10.0.0.1": "10.0.0.1",
      "::ffff:10.0.0.1": "10.0.0.1",
      "::1": "0:0:0:0::/64",
      "2001:0DB8:0000:0012::9": "2001:db8:0:12::/64",
      "2001:db8:0:12:1:2:3:4": "2001:db8:0:12::/64",
      "2001:db8::12:1:2:3:4": "2001:db8:0:12::/64",
      "fe80::1%eth0.100": "fe80:0:0:0::/64",
      "2001:db8::": "2001:db8:0:0::/64",
    };
    for (const [address, client] of Object.entries(cases)) {
      assert.equal(clientAddress(new Request("http://cache"), new Server(address)), client);
    }
  });
});
