import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, metaNamespaceKey } from "@listwatch/cache";
import { newStore } from "@listwatch/cache/store";
import { FreshReads } from "../../../src/hono/content/fresh_reads.ts";
import type { ServedInformer } from "../../../src/hono/content/served_informer.ts";
import type { MetadataSource } from "../../../src/informer/snapshot/progress.ts";
import type { WatchEvent } from "../../../src/meta/list_watch.ts";
import { newStatus, StatusError } from "../../../src/meta/status.ts";
import { newPartwiseWaiters } from "../../../src/meta/version_waiters.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { LogRecorder } from "../../log_recorder.ts";
import { ListenerCensus } from "../../simulation/listener_census.ts";

const TIMEOUT_MS = 5_000;

interface Proof {
  readonly after: string;
  readonly through: string;
  readonly byState?: boolean;
}

/** The content of one resource, and the server that it comes from. */
class World {
  readonly clock = new FakeClock(1_000_000);
  readonly log = new LogRecorder();
  readonly store = newStore<KubernetesObject>(metaNamespaceKey);
  readonly proofs: Proof[] = [];
  /** Since when something does not come, at each notice to the informer. */
  readonly overdue: number[] = [];
  /** What was requested of the server, and when. */
  readonly asked: string[] = [];
  /** The version of the content. */
  position = "10";
  /** The version of the server; a function may answer later, or fail. */
  version: string | (() => string | Promise<string>) = "10";
  items: readonly KubernetesObject[] = [];
  isLarge = false;
  /** What a short watch brings. */
  events: () => readonly WatchEvent<KubernetesObject>[] = () => [bookmark("10")];
  readonly #waiters = newPartwiseWaiters(() => this.position, this);
  readonly #observers = new Set<() => void>();
  readonly #startMs = this.clock.monotonicNow();
  readonly reads: FreshReads;

  constructor() {
    const content = {
      reaches: async (version: string, options: Parameters<FreshReads["reaches"]>[1]) =>
        await this.#waiters.wait(version, options) === "reached",
    };
    Object.defineProperty(content, "resourceVersion", { get: () => this.position });
    const informer: Pick<ServedInformer, "indexer" | "observe" | "proven" | "overdue"> = {
      indexer: this.store,
      observe: (observer) => {
        const call = observer as () => void;
        this.#observers.add(call);
        return () => void this.#observers.delete(call);
      },
      overdue: ({ monotonicMs }) => void this.overdue.push(monotonicMs - this.#startMs),
      proven: ({ after, through, byState }) => {
        this.proofs.push({ after, through, ...(byState && { byState }) });
        if (after !== this.position) return false;
        this.reach(through);
        return true;
      },
    };
    const of = { informer: informer as ServedInformer, source: this.#source() };
    const options = { freshnessTimeoutMs: TIMEOUT_MS, clock: this.clock, logger: this.log };
    this.reads = new FreshReads(content as ConstructorParameters<typeof FreshReads>[0], of, options);
  }

  get observers(): number {
    return this.#observers.size;
  }

  /** How many requests for one thing there were. */
  count(what: string): number {
    return this.asked.filter((question) => question.startsWith(what)).length;
  }

  reach(version: string): void {
    this.position = version;
    this.#waiters.moved();
  }

  put(name: string, resourceVersion: string): void {
    this.store.update(object(name, resourceVersion));
    this.position = resourceVersion;
    for (const observer of Array.from(this.#observers)) observer();
    this.#waiters.moved();
  }

  /** What a promise has become after so many milliseconds. */
  async after<R>(ms: number, promise: Promise<R>): Promise<R | "waits"> {
    let result: R | "waits" = "waits";
    promise.then((value) => result = value);
    await this.clock.advance(ms);
    return result;
  }

  #source(): MetadataSource {
    const ask = (what: string) =>
      void this.asked.push(`${what} ${this.clock.monotonicNow() - this.#startMs}`);
    return {
      list: async ({ limit }) => {
        ask(limit === 1 ? "version" : "state");
        const resourceVersion = typeof this.version === "string" ? this.version : await this.version();
        const metadata = { resourceVersion, ...(this.isLarge && { continue: "more" }) };
        return { metadata, items: [...this.items] };
      },
      watch: ({ resourceVersion }) => {
        ask(`watch-${resourceVersion}`);
        const batch = this.events();
        const stream = async function* () {
          yield batch;
        };
        return Promise.resolve(stream() as unknown as Awaited<ReturnType<MetadataSource["watch"]>>);
      },
    };
  }
}

const object = (name: string, resourceVersion: string): KubernetesObject => ({
  metadata: { name, resourceVersion },
});
const bookmark = (resourceVersion: string) =>
  ({ type: "BOOKMARK", object: { metadata: { resourceVersion } } }) as WatchEvent<KubernetesObject>;
const added = (name: string, resourceVersion: string) =>
  ({ type: "ADDED", object: object(name, resourceVersion) }) as WatchEvent<KubernetesObject>;

const STRICT = { staleIfError: false };
const busy = (retryAfterMs: number) =>
  new StatusError(newStatus(429, "TooManyRequests", "busy"), { retryAfterMs });

describe("FreshReads.catchUp", () => {
  it("takes no answer to a question that was sent before the read came", async () => {
    const world = new World();
    const answers: ((version: string) => void)[] = [];
    world.version = () => new Promise((resolve) => answers.push(resolve));
    const read = () => world.reads.catchUp({ timeoutMs: 1_000 }, STRICT);
    const first = read();
    await world.clock.advance(0);
    const second = read();
    answers[0]("10");
    assert.equal(await world.after(0, first), "fresh");
    assert.equal(answers.length, 2);
    const third = read();
    answers[1]("10");
    assert.equal(await world.after(0, second), "fresh");
    assert.equal(answers.length, 3);
    // It was written after the second question.
    world.version = "20";
    world.items = [object("web", "20")];
    answers[2]("20");
    assert.equal(await world.after(500, third), "waits");
    world.put("web", "20");
    assert.equal(await world.after(0, third), "fresh");
  });

  it("waits for the content for what the question has left of the time", async () => {
    const world = new World();
    world.version = () => new Promise((resolve) => world.clock.setTimeout(() => resolve("20"), 3_000));
    const read = world.reads.catchUp({ timeoutMs: 5_000 }, STRICT);
    assert.equal(await world.after(4_999, read), "waits");
    assert.equal(await world.after(1, read), "behind");
  });

  it("waits for an answer after a failure, if stale answers are not wanted", async () => {
    const world = new World();
    world.version = () => Promise.reject(new Error("refused"));
    assert.equal(await world.reads.catchUp({}, STRICT), "unknown");
    await world.clock.advance(1_000);
    world.version = () => new Promise((resolve) => world.clock.setTimeout(() => resolve("10"), 100));
    const strict = world.reads.catchUp({}, STRICT);
    const other = world.reads.catchUp({}, STRICT);
    assert.equal(await world.reads.catchUp({}, { staleIfError: true }), "unknown");
    assert.equal(await world.after(100, strict), "fresh");
    assert.equal(await world.after(100, other), "fresh");
  });

  it("has every read wait for its own answer as long as no question has failed", async () => {
    const world = new World();
    world.version = () => new Promise((resolve) => world.clock.setTimeout(() => resolve("10"), 100));
    const reads = [1, 2].map(() => world.reads.catchUp({}, { staleIfError: true }));
    assert.deepEqual(await world.after(200, Promise.all(reads)), ["fresh", "fresh"]);
    assert.equal(world.count("version"), 2);
  });

  it("says to the informer that the server went back in time", async () => {
    const world = new World();
    world.version = "7";
    assert.equal(await world.reads.catchUp({}, STRICT), "behind");
    assert.deepEqual(world.proofs, [{ after: "10", through: "7" }]);
  });

  it("logs nothing once it is closed", async () => {
    const world = new World();
    world.version = () => new Promise(() => {});
    const read = world.reads.catchUp({}, STRICT);
    world.reads.close();
    assert.equal(await world.after(0, read), "unknown");
    assert.deepEqual(world.log.of("warn"), []);
  });

  it("asks nothing for as long as the server wants, ten minutes at most, and whatever fails later", async () => {
    const world = new World();
    world.version = () => Promise.reject(busy(3_600_000));
    await world.reads.catchUp({}, STRICT);
    const asksAfter = async (ms: number) => {
      await world.clock.advance(ms);
      const before = world.asked.length;
      await world.reads.catchUp({}, STRICT);
      return world.asked.length > before;
    };
    assert.equal(await asksAfter(599_999), false);
    assert.equal(await asksAfter(1), true);
    const slow = new World();
    const fails: ((error: Error) => void)[] = [];
    slow.version = () => new Promise((_, reject) => fails.push(reject));
    const [one, other] = [slow.reads.catchUp({}, STRICT), slow.reads.reaches("20", { timeoutMs: 100 })];
    await slow.clock.advance(10);
    assert.equal(fails.length, 2);
    fails[0](busy(60_000));
    await slow.clock.advance(0);
    fails[1](new Error("refused"));
    await Promise.all([one, slow.after(100, other)]);
    const before = slow.asked.length;
    await slow.clock.advance(30_000);
    await slow.reads.catchUp({}, STRICT);
    assert.equal(slow.asked.length, before);
  });
});

describe("FreshReads.reaches", () => {
  it("asks for no proof of what comes within ten milliseconds", async () => {
    const world = new World();
    const reached = world.reads.reaches("11", { timeoutMs: 1_000 });
    assert.equal(await world.after(9, reached), "waits");
    world.put("web", "11");
    assert.equal(await world.after(0, reached), true);
    assert.deepEqual([world.asked, world.clock.pendingTimers], [[], 0]);
  });

  it("looks for proof ten times a second, for all that wait, and no more when none does", async () => {
    const world = new World();
    const waits = ["20", "30"].map((version) => world.reads.reaches(version, { timeoutMs: 1_000 }));
    assert.deepEqual(await world.after(1_000, Promise.all(waits)), [false, false]);
    assert.equal(world.count("state"), 10);
    assert.equal(world.count("watch"), 0, "the server does not have it");
    const before = world.asked.length;
    await world.clock.advance(60_000);
    assert.equal(world.asked.length, before);
    assert.deepEqual([world.clock.pendingTimers, world.observers], [0, 0]);
  });

  it("looks for proof for a read that comes as the one before leaves, at whatever moment", async () => {
    for (let turns = 0; turns < 20; turns++) {
      const world = new World();
      world.version = "20";
      const leaving = new AbortController();
      world.reads.reaches("20", { timeoutMs: 5_000, signal: leaving.signal });
      await world.clock.advance(5);
      leaving.abort();
      for (let i = 0; i < turns; i++) await Promise.resolve();
      assert.equal(await world.after(200, world.reads.reaches("20", { timeoutMs: 5_000 })), true);
      assert.deepEqual(world.proofs, [{ after: "10", through: "20", byState: true }]);
    }
  });

  it("asks nothing once it is closed", async () => {
    const world = new World();
    world.reads.close();
    assert.equal(await world.after(1_000, world.reads.reaches("20", { timeoutMs: 1_000 })), false);
    assert.deepEqual([world.asked, world.clock.pendingTimers], [[], 0]);
  });

  it("waits a tenth of a second for content that becomes what the server has", async () => {
    const world = new World();
    world.version = "20";
    world.items = [object("web", "11")];
    const reached = world.reads.reaches("20", { timeoutMs: 5_000 });
    await world.clock.advance(50);
    assert.equal(world.observers, 1);
    world.put("web", "11");
    assert.equal(await world.after(0, reached), true);
    assert.deepEqual(world.proofs, [{ after: "11", through: "20", byState: true }]);
    assert.equal(world.asked.length, 1);
    assert.deepEqual([world.clock.pendingTimers, world.observers], [0, 0]);
  });

  it("says to the informer that what the server has does not come, after two seconds, and not again at once", async () => {
    const world = new World();
    world.version = "20";
    world.items = [object("web", "15")];
    const reached = world.reads.reaches("20", { timeoutMs: 5_000 });
    await world.clock.advance(2_000);
    assert.deepEqual(world.overdue, []);
    await world.clock.advance(300);
    assert.deepEqual(world.overdue, [10]);
    await world.clock.advance(1_700);
    assert.equal(world.overdue.length, 1);
    assert.equal(await world.after(1_000, reached), false);
    assert.equal(world.overdue.length, 2);
  });

  it("says so of a large resource whose short watches bring what the content lacks", async () => {
    const world = new World();
    world.version = "20";
    world.isLarge = true;
    world.events = () => [added("web", "12"), bookmark("20")];
    const reached = world.reads.reaches("20", { timeoutMs: 5_000 });
    await world.clock.advance(2_500);
    assert.equal(world.overdue.length, 1);
    world.put("web", "12");
    assert.equal(await world.after(200, reached), true);
    assert.equal(world.overdue.length, 1);
  });

  it("leaves no listener on its signals, however many proofs and changes there are", async () => {
    const census = new ListenerCensus();
    const world = new World();
    for (let i = 0; i < 20; i++) {
      const version = String(1_000 + i);
      world.version = version;
      world.items = [object("web", version)];
      const reached = world.reads.reaches(version, { timeoutMs: 5_000 });
      // deno-lint-ignore no-await-in-loop -- one after the other
      await world.clock.advance(50);
      // deno-lint-ignore no-await-in-loop -- one after the other
      for (let k = 0; k < 5; k++) {
        await world.after(0, Promise.resolve(world.put("web", `${11 + 5 * i + k}`)));
      }
      assert.ok(census.most <= 4, `${census.most} listeners in look ${i}`);
      world.put("web", version);
      // deno-lint-ignore no-await-in-loop -- one after the other
      assert.equal(await world.after(100, reached), true);
    }
    world.reads.close();
    assert.equal(census.most, 0);
    census.dispose();
  });

  it("takes a large resource for large for a minute: it proves by short watches, whose changes come first", async () => {
    const world = new World();
    world.version = "20";
    world.isLarge = true;
    world.events = () => [added("web", "12"), bookmark("20")];
    const reached = world.reads.reaches("20", { timeoutMs: 30_000 });
    assert.equal(await world.after(50, reached), "waits");
    assert.deepEqual(world.proofs, []);
    world.put("web", "12");
    assert.equal(await world.after(0, reached), true);
    assert.deepEqual(world.proofs, [{ after: "12", through: "20" }]);
    assert.equal(world.count("watch-10"), 1);
    const states = async (version: string) => {
      world.version = version;
      world.events = () => [bookmark(version)];
      const before = world.count("state");
      assert.equal(await world.after(1_000, world.reads.reaches(version, { timeoutMs: 1_000 })), true);
      return world.count("state") - before;
    };
    assert.equal(await states("30"), 0);
    await world.clock.advance(60_000);
    assert.equal(await states("40"), 1);
  });

  it("proves what one read waits for, while another waits for what the server does not have", async () => {
    const world = new World();
    world.version = "20";
    world.isLarge = true;
    world.events = () => [bookmark("20")];
    const future = world.reads.reaches("90", { timeoutMs: 30_000 });
    assert.equal(await world.after(1_000, world.reads.reaches("20", { timeoutMs: 30_000 })), true);
    assert.equal(await world.after(0, future), "waits");
    const watches = world.count("watch");
    await world.clock.advance(5_000);
    assert.equal(world.count("watch"), watches, "what the server does not have cannot be proven");
  });

  it("proves on where a short watch ends without a bookmark", async () => {
    const world = new World();
    world.version = "20";
    world.isLarge = true;
    let tries = 0;
    world.events = () => ++tries === 1 ? [added("web", "12")] : [bookmark("20")];
    assert.equal(await world.after(300, world.reads.reaches("20", { timeoutMs: 30_000 })), true);
    assert.deepEqual(world.proofs, [{ after: "10", through: "20" }]);
  });

  it("proves on where a short watch is from too long ago", async () => {
    const world = new World();
    world.version = "20";
    world.isLarge = true;
    let tries = 0;
    world.events = () => {
      if (++tries === 1) throw new StatusError(newStatus(410, "Expired", "too old"));
      return [bookmark("20")];
    };
    assert.equal(await world.after(300, world.reads.reaches("20", { timeoutMs: 30_000 })), true);
  });
});

describe("FreshReads.isLost", () => {
  it("is true five seconds later if the server is before the version, and false if it is there", async () => {
    for (const [version, isLost] of [["19", true], ["20", false], ["21", false]] as const) {
      const world = new World();
      world.version = version;
      const lost = world.reads.isLost("20", new AbortController().signal);
      assert.equal(await world.after(4_999, lost), "waits");
      assert.equal(await world.after(1, lost), isLost);
    }
  });

  it("asks nothing for what has come meanwhile", async () => {
    const world = new World();
    const lost = world.reads.isLost("20", new AbortController().signal);
    await world.clock.advance(1_000);
    world.reach("20");
    assert.equal(await world.after(4_000, lost), false);
    assert.deepEqual(world.asked, []);
  });

  it("asks every half minute while the server does not answer, until it is closed", async () => {
    const world = new World();
    world.version = () => Promise.reject(new Error("refused"));
    const lost = world.reads.isLost("20", new AbortController().signal);
    assert.equal(await world.after(65_000, lost), "waits");
    assert.deepEqual(world.asked, ["version 5000", "version 35000", "version 65000"]);
    world.reads.close();
    assert.equal(await world.after(30_000, lost), false);
    assert.equal(world.clock.pendingTimers, 0);
  });

  it("ends with its reader, while it waits for its first question, and for the next one", async () => {
    for (const waitedMs of [1_000, 20_000]) {
      const world = new World();
      world.version = () => Promise.reject(new Error("refused"));
      const leaving = new AbortController();
      const lost = world.reads.isLost("20", leaving.signal);
      assert.equal(await world.after(waitedMs, lost), "waits");
      leaving.abort();
      assert.equal(await world.after(0, lost), false);
      assert.equal(world.clock.pendingTimers, 0);
    }
  });

  it("counts the seconds from the first watch of a reader that comes again, unless that was long ago", async () => {
    const { signal } = new AbortController();
    /** How long a reader waits that comes for `version`. */
    const waitOf = async (world: World, version: string) => {
      const lost = world.reads.isLost(version, signal);
      for (let waitedMs = 0;; waitedMs += 1_000) {
        const answer = await world.after(waitedMs === 0 ? 0 : 1_000, lost);
        if (answer !== "waits") return waitedMs;
      }
    };
    const world = new World();
    assert.equal(await waitOf(world, "20"), 5_000);
    assert.equal(await waitOf(world, "20"), 0);
    // A version is dropped only when another reader comes.
    await world.clock.advance(55_000);
    assert.equal(await waitOf(world, "30"), 5_000);
    assert.equal(await waitOf(world, "20"), 0);
    assert.equal(await waitOf(world, "40"), 5_000);
    assert.equal(await waitOf(world, "20"), 5_000);
    assert.equal(await waitOf(world, "30"), 0);
    // What the content has reached since is not awaited any more.
    world.reach("35");
    world.version = "35";
    assert.equal(await waitOf(world, "50"), 5_000);
    world.reach("10");
    world.version = "10";
    assert.equal(await waitOf(world, "30"), 5_000);
  });

  it("remembers 64 versions, the oldest least", async () => {
    const world = new World();
    const leaving = new AbortController();
    for (let i = 0; i < 64; i++) world.reads.isLost(`${1_000 + i}`, leaving.signal);
    await world.clock.advance(5_000);
    const first = world.reads.isLost("1000", new AbortController().signal);
    assert.equal(await world.after(0, first), true);
    const next = world.reads.isLost("9999", new AbortController().signal);
    await world.clock.advance(5_000);
    assert.equal(await next, true);
    const again = world.reads.isLost("1000", new AbortController().signal);
    assert.equal(await world.after(0, again), "waits");
    leaving.abort();
    await world.clock.advance(5_000);
    assert.equal(await again, true);
  });

  it("is false for a reader that leaves during the question", async () => {
    const world = new World();
    world.version = () => new Promise((resolve) => world.clock.setTimeout(() => resolve("7"), 100));
    const leaving = new AbortController();
    const lost = world.reads.isLost("20", leaving.signal);
    await world.clock.advance(5_050);
    leaving.abort();
    assert.equal(await world.after(100, lost), false);
  });
});
