import { newCluster, type ResourceClient, silentLogger } from "@listwatch/cache";
import { answerStatus, FakeClock, InMemoryApiServer, seededRandom } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  LeaderElector,
  type LeaderOptions,
  type Leadership,
  type Lease,
} from "../../src/controller/leader_election.ts";
import { realClock } from "../../src/util/clock.ts";
import { Computer } from "./computer.ts";
import { CountingSignal } from "../counting_signal.ts";
import { propertyOptions } from "../property.ts";

const LEASES = "coordination.k8s.io/v1/leases";

/** A process that takes part in the election on a computer of its own. */
class Candidate {
  readonly computer: Computer;
  readonly elector: LeaderElector;
  readonly #stop = new CountingSignal();
  /** The warnings that it has logged. */
  readonly warnings: string[] = [];
  /** The other lines that it has logged. */
  readonly news: string[] = [];
  leadership: Leadership | undefined;
  readonly ended: Promise<void>;

  constructor(server: InMemoryApiServer, computer: Computer, options: Partial<LeaderOptions> = {}) {
    this.computer = computer;
    const cluster = newCluster({
      server: "http://in-memory",
      fetch: (url, init) => computer.fetch(server.fetch, url, init),
      clock: computer,
    });
    this.elector = new LeaderElector(cluster.resource<Lease>(LEASES, { namespace: "default" }), {
      lease: "controller",
      ...options,
      identity: computer.name,
      clock: computer,
      random: computer.random,
      logger: {
        debug() {},
        info: (line) => void this.news.push(line),
        warn: (line) => void this.warnings.push(line),
        error() {},
      },
    });
    this.ended = this.#run();
  }

  /** Whether a write would be sent now. */
  get mayWrite(): boolean {
    if (this.computer.isFrozen || this.leadership === undefined) return false;
    try {
      this.leadership.check();
      return true;
    } catch {
      return false;
    }
  }

  /** How many listeners the signal has that ends it. */
  get listeners(): number {
    return this.#stop.listeners;
  }

  /** Ends as a program does at SIGTERM. */
  stop(): void {
    this.#stop.abort(new Error("stopped"));
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    try {
      this.leadership = await this.elector.acquire(signal);
      await new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => resolve(), { once: true });
        this.leadership!.signal.addEventListener("abort", () => resolve(), { once: true });
        if (signal.aborted || this.leadership!.signal.aborted) resolve();
      });
      await this.leadership.release();
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

interface Election {
  readonly clock: FakeClock;
  readonly server: InMemoryApiServer;
  add(name: string, options?: Partial<LeaderOptions> & { readonly speed?: number }): Candidate;
  leaders(): string[];
  until(isSo: () => boolean, withinMs: number): Promise<number>;
  [Symbol.asyncDispose](): Promise<void>;
}

function newElection(): Election {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const server = new InMemoryApiServer({ clock });
  const candidates: Candidate[] = [];
  return {
    clock,
    server,
    add(name, { speed = 1, ...options } = {}) {
      const random = seededRandom(candidates.length + 1);
      const candidate = new Candidate(server, new Computer(name, clock, { speed, random }), options);
      candidates.push(candidate);
      return candidate;
    },
    leaders: () => candidates.filter(({ mayWrite }) => mayWrite).map(({ computer }) => computer.name),
    async until(isSo, withinMs) {
      for (let ms = 0; ms < withinMs; ms += 50) {
        if (isSo()) return ms;
        await clock.advance(50);
      }
      assert.ok(isSo(), `not within ${withinMs} ms: ${isSo}`);
      return withinMs;
    },
    async [Symbol.asyncDispose]() {
      for (const candidate of candidates) {
        candidate.computer.thaw();
        candidate.stop();
      }
      await clock.advance(60_000);
      await Promise.all(candidates.map(({ ended }) => ended));
      server.close();
      await clock.advance(1_000);
      assert.equal(clock.pendingTimers, 0);
    },
  };
}

describe("LeaderElector.acquire", () => {
  it("makes the Lease as client-go does, and renews it", async () => {
    await using election = newElection();
    const { clock, server, until, leaders } = election;
    const made: Lease[] = [];
    server.intercept(async (request, next) => {
      const { spec: _, ...named } = await request.clone().json() as Lease;
      made.push(named);
      return await next(request);
    }, { match: ({ method }) => method === "POST" });
    election.add("a");
    await until(() => leaders().length === 1, 1_000);
    assert.deepEqual(made, [{
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "controller", namespace: "default" },
    }]);
    const first = server.get<Lease>(LEASES, "default/controller")!.spec!;
    assert.equal(first.holderIdentity, "a");
    assert.equal(first.leaseDurationSeconds, 15);
    assert.equal(first.leaseTransitions, 0);
    assert.equal(first.acquireTime, first.renewTime);
    assert.match(first.renewTime ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    await clock.advance(60_000);
    assert.deepEqual(leaders(), ["a"]);
    const later = server.get<Lease>(LEASES, "default/controller")!.spec!;
    assert.equal(later.acquireTime, first.acquireTime);
    assert.ok(later.renewTime! > first.renewTime!);
  });

  it("takes over within one second of a release", async () => {
    await using election = newElection();
    const { clock, server, until, leaders } = election;
    const a = election.add("a");
    await until(() => leaders().length === 1, 1_000);
    election.add("b");
    await clock.advance(30_000);
    assert.deepEqual(leaders(), ["a"]);
    a.stop();
    await until(() => leaders().includes("b"), 1_000);
    assert.equal(server.get<Lease>(LEASES, "default/controller")!.spec!.leaseTransitions, 1);
  });

  for (const before of ["there is none", "it is free", "it has run out"]) {
    it(`releases a lease whose taking was not answered yet at the stop, where ${before}`, async () => {
      await using election = newElection();
      const { clock, server, until, leaders } = election;
      if (before !== "there is none") {
        const holderIdentity = before === "it is free" ? "" : "x";
        const spec = { holderIdentity, leaseDurationSeconds: 1, leaseTransitions: 4 };
        server.create(LEASES, { metadata: { name: "controller", namespace: "default" }, spec });
      }
      const holder = () => server.get<Lease>(LEASES, "default/controller")?.spec?.holderIdentity;
      const a = election.add("a");
      a.computer.answerDelayMs = 1_000;
      await until(() => holder() === "a", 10_000);
      assert.deepEqual(leaders(), []);
      a.stop();
      let isOver = false;
      a.ended.then(() => isOver = true);
      await until(() => isOver, 5_000);
      assert.equal(holder(), "");
      assert.equal(a.leadership, undefined);
      assert.equal(clock.pendingTimers, 0);
      election.add("b");
      await until(() => leaders().includes("b"), 1_000);
    });
  }

  for (const before of ["there is none", "it is free"]) {
    it(`says nothing of a lease that another process takes first, and leaves it, where ${before}`, async () => {
      await using election = newElection();
      const { clock, server } = election;
      const of = (holderIdentity: string) =>
        ({
          metadata: { name: "controller", namespace: "default" },
          spec: { holderIdentity, leaseDurationSeconds: 60 },
        }) as Lease;
      if (before === "it is free") server.create(LEASES, of(""));
      server.intercept((request, next) => {
        if (before === "it is free") server.patch(LEASES, "default/controller", { spec: of("x").spec });
        else server.create(LEASES, of("x"));
        return next(request);
      }, { times: 1, match: ({ method }) => method === "POST" || method === "PUT" });
      const a = election.add("a");
      await clock.advance(100);
      assert.equal(server.get<Lease>(LEASES, "default/controller")!.spec!.holderIdentity, "x");
      assert.deepEqual(a.warnings, []);
      const count = server.requests.length;
      a.stop();
      await clock.advance(10_000);
      await a.ended;
      assert.equal(server.requests.length, count);
    });
  }

  it("ends soon after a stop, although no answer comes any more to the taking of a lease", async () => {
    await using election = newElection();
    const { clock, server, until } = election;
    const a = election.add("a");
    a.computer.answerDelayMs = 1_000;
    await until(() => server.get<Lease>(LEASES, "default/controller") !== undefined, 5_000);
    a.computer.answerDelayMs = 1e9;
    let isOver = false;
    a.ended.then(() => isOver = true);
    await clock.advance(500);
    a.stop();
    // Half a second for the answer, and five for the release.
    const ms = await until(() => isOver, 12_000);
    assert.ok(ms > 5_400 && ms <= 5_550, `${ms} ms`);
    assert.equal(clock.pendingTimers, 0);
  });

  it("waits five seconds after a stop for the answer to the taking of a lease, and gives it back then", async () => {
    await using election = newElection();
    const { clock, server, until } = election;
    server.intercept(async (request, next) => {
      await next(request);
      return await new Promise<Response>(() => {});
    }, { times: 1, match: ({ method }) => method === "POST" });
    const a = election.add("a", { leaseMs: 30_000, renewDeadlineMs: 20_000 });
    const holder = () => server.get<Lease>(LEASES, "default/controller")?.spec?.holderIdentity;
    await until(() => holder() === "a", 5_000);
    let isOver = false;
    a.ended.then(() => isOver = true);
    a.stop();
    await clock.advance(4_950);
    assert.equal(isOver, false);
    await clock.advance(100);
    assert.deepEqual([isOver, holder(), clock.pendingTimers], [true, "", 0]);
  });

  it("keeps a lease whose taking was not answered yet at the stop, where it is not to be released", async () => {
    await using election = newElection();
    const { clock, server, until } = election;
    const a = election.add("a", { releaseOnStop: false });
    a.computer.answerDelayMs = 1_000;
    const holder = () => server.get<Lease>(LEASES, "default/controller")?.spec?.holderIdentity;
    await until(() => holder() === "a", 5_000);
    a.stop();
    await clock.advance(10_000);
    await a.ended;
    assert.equal(holder(), "a");
  });

  it("looks at a lease that others hold every two seconds and a random part of them more", async () => {
    await using election = newElection();
    const { clock, server, until, leaders } = election;
    election.add("a");
    await until(() => leaders().length === 1, 1_000);
    const looks: number[] = [];
    server.intercept((request, next) => {
      looks.push(clock.now());
      return next(request);
    }, { match: ({ method, path }) => method === "GET" && path.endsWith("/leases/controller") });
    election.add("b");
    await clock.advance(60_000);
    const pauses = looks.slice(1).map((at, i) => at - looks[i]);
    assert.ok(pauses.length > 10 && Math.min(...pauses) >= 2_000 && Math.max(...pauses) < 4_500, `${pauses}`);
    assert.ok(Math.max(...pauses) > 3_000, `${pauses}`);
    const lists = server.requests.filter(({ path }) => path.endsWith("/leases")).map(({ query }) => query);
    assert.ok(lists.length > 1);
    const others = lists.filter(({ fieldSelector }) => fieldSelector !== "metadata.name=controller");
    assert.deepEqual(others.length, 1, "one has made it");
  });

  for (const [what, seconds] of [["is deleted", 0], ["was released before the watch began", 1]] as const) {
    it(`takes at once a lease that ${what}`, async () => {
      await using election = newElection();
      const { clock, server, until, leaders } = election;
      const lease = (holderIdentity: string) => ({
        metadata: { name: "controller", namespace: "default" },
        spec: { holderIdentity, leaseDurationSeconds: 60 },
      } as Lease);
      server.create(LEASES, lease("x"));
      if (seconds > 0) {
        server.intercept(async (request, next) => {
          await new Promise<void>((resolve) => clock.setTimeout(resolve, 1_000));
          server.patch(LEASES, "default/controller", { spec: { holderIdentity: "" } });
          return next(request);
        }, { times: 1, match: ({ path }) => path.endsWith("/leases") });
      }
      election.add("a");
      await clock.advance(1_000);
      if (seconds === 0) {
        assert.deepEqual(leaders(), []);
        server.delete(LEASES, "default/controller");
      }
      await until(() => leaders().includes("a"), 200);
    });
  }

  it("continues with the lease of a process of its name that was there before it", async () => {
    await using election = newElection();
    const { server, until, leaders } = election;
    const acquireTime = "2025-12-31T00:00:00.000000Z";
    server.create(LEASES, {
      metadata: { name: "controller", namespace: "default" },
      spec: {
        holderIdentity: "a",
        leaseDurationSeconds: 60,
        acquireTime,
        renewTime: acquireTime,
        leaseTransitions: 4,
        strategy: "OldestEmulationVersion",
      },
    } as Lease);
    election.add("a");
    await until(() => leaders().includes("a"), 1_000);
    const { spec } = server.get<Lease>(LEASES, "default/controller")!;
    assert.deepEqual(spec, {
      holderIdentity: "a",
      leaseDurationSeconds: 15,
      acquireTime,
      renewTime: "2026-01-01T00:00:00.000000Z",
      leaseTransitions: 4,
      strategy: "OldestEmulationVersion",
    });
  });

  it("tries again where no answer comes to the taking of a lease", async () => {
    await using election = newElection();
    const { server, until, leaders } = election;
    server.intercept(() => new Promise<Response>(() => {}), {
      times: 1,
      match: ({ method }) => method === "POST",
    });
    election.add("a", { leaseMs: 15_500 });
    const ms = await until(() => leaders().includes("a"), 10_000);
    assert.ok(ms >= 5_000, `${ms}`);
    const { spec } = server.get<Lease>(LEASES, "default/controller")!;
    assert.equal(spec?.leaseDurationSeconds, 16, "of seconds, no fewer");
  });

  it("takes over within 20 s of a killed leader, not within the lease's duration", async () => {
    await using election = newElection();
    const { clock, until, leaders } = election;
    const a = election.add("a");
    await until(() => leaders().length === 1, 1_000);
    election.add("b");
    await clock.advance(10_000);
    a.computer.freeze(); // for ever
    const ms = await until(() => leaders().includes("b"), 20_000);
    assert.ok(ms >= 12_000, `after ${ms} ms`);
  });

  it("takes over within 20 s of a killed leader, also where a look at its lease fails meanwhile", async () => {
    await using election = newElection();
    const { clock, server, until, leaders } = election;
    const a = election.add("a");
    await until(() => leaders().length === 1, 1_000);
    const b = election.add("b");
    await clock.advance(10_000);
    a.computer.freeze(); // for ever
    await clock.advance(8_000);
    server.intercept(answerStatus(503), { times: 1, match: ({ method }) => method === "GET" });
    await until(() => leaders().includes("b"), 12_000);
    assert.equal(b.warnings.length, 1);
  });

  it("takes over within 20 s of a killed leader, though others write to the metadata of its lease", async () => {
    await using election = newElection();
    const { clock, server, until, leaders } = election;
    const a = election.add("a");
    await until(() => leaders().length === 1, 1_000);
    election.add("b");
    await clock.advance(3_000);
    a.computer.freeze();
    for (let seconds = 0; seconds < 20; seconds += 4) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      await clock.advance(4_000);
      server.patch(LEASES, "default/controller", { metadata: { annotations: { seconds: String(seconds) } } });
    }
    assert.ok(leaders().includes("b"));
  });

  it("looks at the lease again where no answer comes to a look", async () => {
    await using election = newElection();
    const { server, until, leaders } = election;
    const match = ({ method, path }: { readonly method: string; readonly path: string }) =>
      method === "GET" && path.endsWith("/leases/controller");
    server.intercept(() => new Promise<Response>(() => {}), { times: 1, match });
    election.add("a");
    const ms = await until(() => leaders().includes("a"), 10_000);
    assert.ok(ms >= 5_000, `${ms}`);
  });

  it("waits for the duration that the holder wrote, however old its times look", async () => {
    await using election = newElection();
    const { clock, server, until, leaders } = election;
    server.create(LEASES, {
      metadata: { name: "controller", namespace: "default" },
      spec: { holderIdentity: "x", leaseDurationSeconds: 60, renewTime: "2001-01-01T00:00:00.000000Z" },
    } as Lease);
    election.add("a");
    await clock.advance(58_000);
    assert.deepEqual(leaders(), []);
    await until(() => leaders().includes("a"), 8_000);
  });

  it("takes no lease from its holder because a wall clock was set forward", async () => {
    await using election = newElection();
    const { clock, until, leaders } = election;
    election.add("a");
    await until(() => leaders().length === 1, 1_000);
    const b = election.add("b");
    for (let i = 0; i < 20; i++) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      await clock.advance(1_900);
      b.computer.wallAheadMs += 3_600_000;
      assert.deepEqual(leaders(), ["a"]);
    }
  });

  it("takes over from a killed leader no sooner because a wall clock was set forward", async () => {
    await using election = newElection();
    const { clock, until, leaders } = election;
    const a = election.add("a");
    await until(() => leaders().length === 1, 1_000);
    const b = election.add("b");
    await clock.advance(10_000);
    a.computer.freeze(); // for ever
    await clock.advance(5_000);
    b.computer.wallAheadMs = 3_600_000;
    const ms = await until(() => leaders().includes("b"), 15_000);
    assert.ok(ms >= 7_000, `after ${ms} ms`);
  });

  it("says who holds the lease, once each time that it is another process", async () => {
    await using election = newElection();
    const { clock, server, until, leaders } = election;
    const a = election.add("a");
    await until(() => leaders().length === 1, 1_000);
    const b = election.add("b");
    await clock.advance(20_000);
    server.patch(LEASES, "default/controller", { spec: { holderIdentity: "x" } });
    await clock.advance(8_000);
    assert.deepEqual(a.news, ["leads by the lease controller as a"]);
    assert.deepEqual(b.news, ["the lease controller is held by a", "the lease controller is held by x"]);
  });

  it("leaves nothing at its signal, however long it waits", async () => {
    await using election = newElection();
    const { clock, until, leaders } = election;
    election.add("a");
    await until(() => leaders().length === 1, 1_000);
    const b = election.add("b");
    await clock.advance(10_000);
    const { listeners } = b;
    await clock.advance(120_000);
    assert.equal(b.listeners, listeners);
  });

  it("continues to try while the server refuses or is away", async () => {
    await using election = newElection();
    const { server, clock, until, leaders } = election;
    const restore = server.intercept(answerStatus(403), { match: ({ path }) => path.includes("leases") });
    const a = election.add("a");
    await clock.advance(30_000);
    assert.deepEqual(leaders(), []);
    assert.ok(a.warnings.length >= 7, `${a.warnings.length}`);
    for (const line of a.warnings) {
      assert.match(line, /^Cannot take or renew the lease controller: Cannot get/);
    }
    restore();
    await until(() => leaders().length === 1, 5_000);
  });

  it("makes no lease where it could not be read whether there is one", async () => {
    await using election = newElection();
    const { server, clock } = election;
    server.intercept(answerStatus(500), { match: ({ method }) => method === "GET" });
    election.add("a");
    await clock.advance(5_000);
    assert.deepEqual(server.requests.filter(({ method }) => method !== "GET"), []);
  });

  it("takes a lease at once whose holder has written no duration", async () => {
    await using election = newElection();
    const { server, until, leaders } = election;
    const spec = { holderIdentity: "x" };
    server.create(LEASES, { metadata: { name: "controller", namespace: "default" }, spec });
    election.add("a");
    await until(() => leaders().length === 1, 100);
  });

  it("takes a lease that has no more than a name", async () => {
    await using election = newElection();
    const { server, until, leaders } = election;
    server.create(LEASES, { metadata: { name: "controller", namespace: "default" } });
    election.add("a");
    await until(() => leaders().length === 1, 1_000);
    const { spec } = server.get<Lease>(LEASES, "default/controller")!;
    assert.deepEqual([spec?.holderIdentity, spec?.leaseTransitions], ["a", 1]);
    assert.equal(spec?.acquireTime, spec?.renewTime);
  });
});

describe("Leadership.check", () => {
  it("refuses to write once the lease could not be renewed for the deadline, before others may lead", async () => {
    await using election = newElection();
    const { server, clock, until, leaders } = election;
    const a = election.add("a");
    await until(() => leaders().length === 1, 1_000);
    server.intercept(answerStatus(503), { match: ({ method }) => method === "PUT" });
    await clock.advance(10_001);
    assert.deepEqual(leaders(), []);
    assert.throws(
      () => a.leadership!.check(),
      /Cannot lead any more by the lease "controller": it was not renewed/,
    );
    assert.equal(a.leadership!.signal.aborted, true);
  });

  it("counts from when a renewal was sent, not from when its answer came", async () => {
    await using election = newElection();
    const { clock, until, leaders } = election;
    const a = election.add("a", { speed: 0.9 });
    await until(() => leaders().length === 1, 1_000);
    election.add("b", { speed: 1.1 });
    await clock.advance(10_000);
    a.computer.answerDelayMs = 8_500;
    await clock.advance(11_500);
    a.computer.network = "away";
    for (let ms = 0; ms < 40_000; ms += 100) {
      await clock.advance(100);
      assert.ok(leaders().length < 2, `both lead after ${ms} ms`);
    }
    assert.deepEqual(leaders(), ["b"]);
  });

  it("sends one renewal at a time, however slow the server is", async () => {
    await using election = newElection();
    const { clock, server, until, leaders } = election;
    const a = election.add("a");
    await until(() => leaders().length === 1, 1_000);
    const codes: number[] = [];
    server.intercept(async (request, next) => {
      const response = await next(request);
      codes.push(response.status);
      return response;
    }, { match: ({ method }) => method === "PUT" });
    a.computer.answerDelayMs = 3_000;
    await clock.advance(30_000);
    assert.deepEqual(leaders(), ["a"]);
    assert.deepEqual(codes, Array(6).fill(200));
  });

  it("allows writes while others write to the Lease and leave its holder", async () => {
    await using election = newElection();
    const { clock, server, until, leaders } = election;
    const a = election.add("a");
    await until(() => leaders().length === 1, 1_000);
    for (let i = 0; i < 20; i++) {
      server.patch(LEASES, "default/controller", { metadata: { labels: { i: String(i) } } });
      // deno-lint-ignore no-await-in-loop -- one after the other
      await clock.advance(5_000);
      assert.deepEqual(leaders(), ["a"]);
    }
    assert.deepEqual(a.warnings, []);
  });

  it("allows writes while no answer comes to one renewal, or to one in three", async () => {
    await using election = newElection();
    const { clock, server, until, leaders } = election;
    election.add("a");
    await until(() => leaders().length === 1, 1_000);
    let count = 0;
    server.intercept((request, next) => count++ % 3 > 0 ? next(request) : new Promise<Response>(() => {}), {
      match: ({ method }) => method === "PUT",
    });
    for (let i = 0; i < 60; i++) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      await clock.advance(1_000);
      assert.deepEqual(leaders(), ["a"]);
    }
    assert.ok(count > 15, `${count}`);
  });

  it("refuses to write in the turn in which a frozen process wakes up, before its timers have run", async () => {
    await using election = newElection();
    const { clock, until, leaders } = election;
    const a = election.add("a");
    await until(() => leaders().length === 1, 1_000);
    election.add("b");
    await clock.advance(3_000);
    a.computer.freeze();
    await until(() => leaders().includes("b"), 20_000);
    a.computer.thaw();
    assert.throws(() => a.leadership!.check(), { code: "LeadershipLost" });
  });

  it("refuses to write after a suspension that shows on the wall clock alone", async () => {
    await using election = newElection();
    const { clock, until, leaders } = election;
    const a = election.add("a");
    await until(() => leaders().length === 1, 1_000);
    await clock.advance(3_000);
    a.computer.wallAheadMs = 11_000; // the monotonic clock of Linux stops meanwhile
    assert.throws(() => a.leadership!.check(), { code: "LeadershipLost" });
  });
});

describe("Leadership.signal", () => {
  const free = { holderIdentity: "", leaseDurationSeconds: 1 };
  const isDeleted = ({ server }: Election) => server.get(LEASES, "default/controller") === undefined;
  // Another process may have led meanwhile, and this one's caches lack what it wrote.
  const losses: Record<string, (election: Election) => void> = {
    "is held by x": ({ server }) =>
      server.patch(LEASES, "default/controller", { spec: { holderIdentity: "x", leaseDurationSeconds: 60 } }),
    "is held by none": ({ server }) => server.patch(LEASES, "default/controller", { spec: free }),
    // It is 409 of a real API server, as the renewal names a version.
    "was deleted": ({ server }) => server.delete(LEASES, "default/controller"),
    "was deleted (404)": (election) => {
      election.server.delete(LEASES, "default/controller");
      election.server.intercept(answerStatus(404), {
        match: ({ method }) => method === "PUT" && isDeleted(election),
      });
    },
  };
  for (const [how, happens] of Object.entries(losses)) {
    it(`is aborted by the next renewal of a lease that ${how}, which is left as it is`, async () => {
      await using election = newElection();
      const { clock, server, until } = election;
      const a = election.add("a");
      await until(() => a.leadership !== undefined, 1_000);
      await clock.advance(30_000);
      happens(election);
      const after = server.get(LEASES, "default/controller");
      const { signal } = a.leadership!;
      await until(() => signal.aborted, 2_000);
      assert.match(String(signal.reason), new RegExp(`: it ${how.replace(/ \(.*/, "")};`));
      await clock.advance(10_000);
      assert.deepEqual(server.get(LEASES, "default/controller"), after);
      assert.deepEqual(a.warnings, []);
    });
  }

  it("is aborted by the next renewal after a suspension that shows on the wall clock alone", async () => {
    await using election = newElection();
    const { clock, server, until } = election;
    const a = election.add("a");
    await until(() => a.leadership !== undefined, 1_000);
    await clock.advance(3_000);
    a.computer.wallAheadMs = 3_600_000;
    server.clearRequests();
    const { signal } = a.leadership!;
    await until(() => signal.aborted, 2_000);
    assert.match(String(signal.reason), /: it was not renewed for 10000 ms;/);
    assert.deepEqual(server.requests, []);
  });

  for (const leadsMs of [100, 25_100]) {
    it(`is aborted ten seconds after the last renewal, though the next one hangs, after ${leadsMs} ms`, async () => {
      await using election = newElection();
      const { clock, server, until, leaders } = election;
      const a = election.add("a");
      await until(() => leaders().length === 1, 1_000);
      const sent: number[] = [clock.now()];
      const isWrite = ({ method }: { readonly method: string }) => method === "PUT";
      server.intercept((request, next) => (sent.push(clock.now()), next(request)), { match: isWrite });
      await clock.advance(leadsMs);
      const [lastMs] = sent.slice(-1);
      server.intercept(() => new Promise<Response>(() => {}), { match: isWrite });
      let lostMs = 0;
      a.leadership!.signal.addEventListener("abort", () => lostMs = clock.now());
      await clock.advance(20_000);
      assert.ok(Math.abs(lostMs - lastMs - 10_000) <= 50, `${lostMs - lastMs} ms`);
    });
  }
});

describe("Leadership.release", () => {
  it("leaves no timer", async () => {
    await using election = newElection();
    const { clock, until, leaders } = election;
    const a = election.add("a");
    await until(() => leaders().length === 1, 1_000);
    await clock.advance(3_000);
    a.stop();
    await clock.advance(0);
    await a.ended;
    assert.equal(clock.pendingTimers, 0);
    assert.equal(a.elector.isLeading, false);
  });

  it("has given up a renewal that waits for its answer when it resolves, and says nothing of it", async () => {
    await using election = newElection();
    const { clock, until, leaders } = election;
    const a = election.add("a", { releaseOnStop: false });
    await until(() => leaders().length === 1, 1_000);
    a.computer.answerDelayMs = 1_000;
    await clock.advance(2_500);
    assert.ok(clock.pendingTimers > 1);
    await a.leadership!.release();
    assert.deepEqual([clock.pendingTimers, a.elector.isLeading, a.warnings], [0, false, []]);
  });

  it("ends the leadership where a renewal is answered in the same turn", async () => {
    await using election = newElection();
    const { clock, server } = election;
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
    const client = cluster.resource<Lease>(LEASES, { namespace: "default" });
    const renewals: { readonly lease: Lease; readonly answer: (lease: Lease) => void }[] = [];
    const leases = {
      namespace: client.namespace,
      list: client.list.bind(client),
      watch: client.watch.bind(client),
      get: client.get.bind(client),
      create: client.create.bind(client),
      replace: (lease: Lease) => new Promise<Lease>((answer) => renewals.push({ lease, answer })),
    } as unknown as ResourceClient<Lease>;
    const elector = new LeaderElector(leases, {
      lease: "controller",
      releaseOnStop: false,
      identity: "a",
      clock,
      random: () => 0.5,
      logger: silentLogger,
    });
    let timers = 0;
    const acquired = elector.acquire(new AbortController().signal);
    void acquired.then(() => timers = clock.pendingTimers);
    await clock.advance(100);
    const leadership = await acquired;
    assert.equal(timers, 2, "of the deadline and the next renewal; none of the watch");
    await clock.advance(2_000);
    assert.equal(elector.isLeading, true);
    const [{ lease, answer }] = renewals;
    answer(lease);
    await leadership.release();
    await clock.advance(0);
    assert.equal(elector.isLeading, false);
  });

  it("gives the lease back as client-go does", async () => {
    await using election = newElection();
    const { clock, server, until, leaders } = election;
    const a = election.add("a");
    await until(() => leaders().length === 1, 1_000);
    await clock.advance(5_000);
    a.stop();
    await clock.advance(100);
    const { spec } = server.get<Lease>(LEASES, "default/controller")!;
    const { renewTime } = spec!;
    assert.deepEqual(spec, {
      holderIdentity: "",
      leaseDurationSeconds: 1,
      renewTime,
      acquireTime: renewTime,
      leaseTransitions: 0,
    });
    assert.deepEqual(a.warnings, []);
  });

  it("says that the lease could not be given back, and ends", async () => {
    await using election = newElection();
    const { clock, server, until, leaders } = election;
    const a = election.add("a");
    await until(() => leaders().length === 1, 1_000);
    server.intercept(answerStatus(500), { match: ({ method }) => method === "PUT" });
    a.stop();
    await clock.advance(100);
    await a.ended;
    assert.equal(a.warnings.length, 1);
    assert.match(a.warnings[0], /^Cannot release the lease controller: Cannot replace/);
  });

  const losses = ["was not renewed in time", "is held by another process"];
  for (const how of losses) {
    it(`sends nothing for a lease that ${how}`, async () => {
      await using election = newElection();
      const { clock, server, until, leaders } = election;
      const a = election.add("a");
      await until(() => leaders().length === 1, 1_000);
      if (how === "is held by another process") {
        server.patch(LEASES, "default/controller", {
          spec: { holderIdentity: "x", leaseDurationSeconds: 60 },
        });
      } else server.intercept(answerStatus(503), { match: ({ method }) => method === "PUT" });
      let why = "";
      a.leadership!.signal.addEventListener("abort", () => {
        why = String(a.leadership!.signal.reason);
        server.clearRequests();
      });
      await clock.advance(12_000);
      assert.match(
        why,
        how === "is held by another process" ? /: it is held by x;/ : /: it was not renewed for/,
      );
      await a.ended;
      assert.deepEqual(server.requests, []);
      assert.throws(() => a.leadership!.check(), { code: "LeadershipLost" });
    });
  }

  it("leaves a lease to the process that has taken it meanwhile", async () => {
    await using election = newElection();
    const { clock, server, until, leaders } = election;
    const a = election.add("a");
    await until(() => leaders().length === 1, 1_000);
    server.patch(LEASES, "default/controller", { spec: { holderIdentity: "x" } });
    a.stop();
    await clock.advance(100);
    assert.equal(server.get<Lease>(LEASES, "default/controller")!.spec!.holderIdentity, "x");
  });
});

describe("LeaderOptions", () => {
  it("must leave time between the deadline and the duration", () => {
    const computer = new Computer("a", new FakeClock(), { speed: 1, random: () => 0 });
    using server = new InMemoryApiServer();
    assert.throws(
      () => new Candidate(server, computer, { leaseMs: 10_000, renewDeadlineMs: 10_000 }),
      /leaseMs \(10000\) must be greater than renewDeadlineMs \(10000\)/,
    );
    assert.throws(() => new Candidate(server, computer, { retryMs: 9_000 }), RangeError);
    const tight = { leaseMs: 2_401, renewDeadlineMs: 2_400 };
    assert.throws(
      () => new Candidate(server, computer, { ...tight, retryMs: 2_000 }),
      /and that greater than 1.2 times retryMs \(2000\)$/,
    );
  });

  it("are numbers of 1 or more", () => {
    const computer = new Computer("a", new FakeClock(), { speed: 1, random: () => 0 });
    using server = new InMemoryApiServer();
    for (const name of ["leaseMs", "renewDeadlineMs", "retryMs"]) {
      for (const value of [NaN, 0, 0.5, Infinity]) {
        const message = new RegExp(
          `^Cannot lead by the lease controller with a ${name} of ${value}: it must be`,
        );
        assert.throws(() => new Candidate(server, computer, { [name]: value }), {
          name: "RangeError",
          message,
        });
      }
    }
  });
});

describe("LeaderElector in simulated worlds", () => {
  // Three processes with clocks of other speeds, which freeze,
  // lose the network, stop, are killed and come back.
  const { numRuns, seed: from = realClock.now() % 1_000_000 } = propertyOptions(40);
  it(`never has two leaders, and always has one again (seeds from ${from})`, async () => {
    for (let seed = from; seed < from + numRuns; seed++) await world(seed);
  });
});

async function world(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const below = (n: number) => Math.floor(random() * n);
  await using election = newElection();
  const { clock, leaders } = election;
  let count = 0;
  const add = () =>
    election.add(`p${++count}`, { speed: 0.9 + random() * 0.2, releaseOnStop: random() < 0.7 });
  const alive = [add(), add(), add()];
  const check = (during: string) =>
    assert.ok(leaders().length < 2, `seed ${seed}: ${leaders().join(" and ")} lead ${during}`);
  for (let step = 0; step < 60; step++) {
    const at = below(alive.length);
    const { computer } = alive[at];
    switch (below(8)) {
      case 0:
        computer.freeze();
        break;
      case 1:
      case 2:
        computer.thaw();
        check("after a thaw");
        break;
      case 3:
        computer.network = "away";
        break;
      case 4:
        computer.network = "slow";
        break;
      case 5:
        computer.network = "good";
        break;
      case 6:
        if (random() < 0.3) {
          alive[at].stop();
          alive[at] = add();
        }
        break;
    }
    for (let ms = below(8_000); ms >= 0; ms -= 500) {
      await clock.advance(500);
      check(`at step ${step}`);
    }
  }
  for (const { computer } of alive) {
    computer.thaw();
    computer.network = "good";
    check("at the end");
  }
  // Candidates that lost the lease have ended; others are started, as their supervisor would.
  for (const [at, candidate] of alive.entries()) {
    if (candidate.leadership?.signal.aborted) alive[at] = add();
  }
  for (let ms = 0; ms < 40_000 && leaders().length === 0; ms += 500) await clock.advance(500);
  assert.equal(leaders().length, 1, `seed ${seed}: nothing leads`);
}
