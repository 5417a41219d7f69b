import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { silentLogger } from "@listwatch/cache";
import { openGroups, openWindow, type OpenWindowOptions } from "@listwatch/cache/screens";
import { readApi } from "@listwatch/cache/hono";
import { AGE_ANNOTATION } from "../../src/meta/list_watch.ts";
import { FakeClock } from "../../src/testing/fake_clock.ts";
import { abortable } from "../../src/util/abort.ts";
import { settle } from "../../src/util/clock.ts";
import { FakeInformer, object, type TestObject } from "../hono/fake_informer.ts";
import { LogRecorder } from "../log_recorder.ts";
import { propertyOptions } from "../property.ts";

const URL_OF_PODS = "https://cache.example/api/v1/pods";

function pod(name: string, resourceVersion: number, restarts?: number): TestObject {
  return object(name, resourceVersion, { status: restarts === undefined ? {} : { restarts } });
}

/** A cache, and the network before it. */
class World {
  readonly clock = new FakeClock();
  readonly informer: FakeInformer;
  readonly urls: URL[] = [];
  /** What the next requests are answered, in place of the cache. */
  readonly answers: (() => Response | Promise<Response>)[] = [];
  readonly #api: ReturnType<typeof readApi>;
  #streams: ReadableStreamDefaultController<Uint8Array>[] = [];
  isSilent = false;

  constructor(objects: readonly TestObject[] = [pod("a/1", 1, 3), pod("a/2", 2, 2), pod("a/3", 3, 1)]) {
    this.informer = FakeInformer.with(objects, 1_000);
    this.#api = readApi({
      resources: [{ informer: this.informer, resource: "v1/pods" }],
      allowAnonymous: true,
      clock: this.clock,
      logger: silentLogger,
    });
  }

  options(query: Partial<Omit<OpenWindowOptions, "table">> = {}) {
    return {
      url: URL_OF_PODS,
      sortBy: "status.restarts",
      limit: 2,
      clock: this.clock,
      random: () => 0,
      fetch: (request: Request) => this.#fetch(request),
      ...query,
    };
  }

  groups() {
    const { sortBy: _, limit: __, ...options } = this.options();
    return { ...options, groupBy: ["status.phase"] };
  }

  /** Breaks all connections. */
  cut(): void {
    for (const stream of this.#streams.splice(0)) stream.error(new TypeError("cut"));
  }

  /** Ends all answers in good order. */
  end(): void {
    for (const stream of this.#streams.splice(0)) stream.close();
  }

  async settled(ms = 0): Promise<void> {
    await settle();
    await this.clock.advance(ms);
    await settle();
  }

  async #fetch(request: Request): Promise<Response> {
    this.urls.push(new URL(request.url));
    const answer = this.answers.shift();
    if (answer !== undefined) return await abortable(Promise.resolve(answer()), request.signal);
    const response = await this.#api.fetch(request);
    if (!response.ok) return response;
    const reader = response.body!.getReader();
    let own: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        own = controller;
        this.#streams.push(controller);
        (async () => {
          for (;;) {
            const { done, value } = await reader.read();
            if (done) return controller.close();
            if (!this.isSilent) controller.enqueue(value);
          }
        })().catch(() => {});
      },
      cancel: () => {
        this.#streams = this.#streams.filter((stream) => stream !== own);
        return reader.cancel();
      },
    });
    return new Response(body, { headers: response.headers });
  }
}

const ROWS = {
  type: "ROWS",
  object: { metadata: { resourceVersion: "1" }, window: { total: 1, offset: 0 }, items: [{}] },
};

function framesOf(...frames: readonly object[]): string {
  return frames.map((frame) => `${JSON.stringify(frame)}\n`).join("");
}

/** A stream whose frames come one by one. */
class Feed {
  #controller!: ReadableStreamDefaultController<Uint8Array>;

  response(headers: Readonly<Record<string, string>> = {}): Response {
    const start = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      this.#controller = controller;
    };
    return new Response(new ReadableStream({ start }), { headers });
  }

  end(): void {
    this.#controller.close();
  }

  send(frame: object): void {
    this.#controller.enqueue(new TextEncoder().encode(framesOf(frame)));
  }
}

const namesOf = (
  { rows }: { readonly rows: readonly { readonly metadata?: { readonly name?: string } }[] },
) => rows.map(({ metadata }) => metadata?.name);

describe("openWindow", () => {
  it("shows the rows, and keeps them up to date", async () => {
    const world = new World();
    const window = openWindow(world.options());
    let calls = 0;
    const stop = window.subscribe(() => calls++);
    assert.deepEqual(window.getSnapshot(), {
      state: "connecting",
      rows: [],
      total: 0,
      offset: 0,
      resourceVersion: "",
      columns: [],
      error: undefined,
    });
    await world.settled();
    const first = window.getSnapshot();
    assert.deepEqual([first.state, namesOf(first), first.total, first.offset], ["live", ["3", "2"], 3, 0]);
    assert.deepEqual([first.resourceVersion, first.error, first.columns], ["1000", undefined, []]);
    assert.equal(calls, 1);
    assert.equal(window.getSnapshot(), first);
    await world.settled(100);
    world.informer.put(pod("a/4", 1_001, 0));
    await world.settled(100);
    const second = window.getSnapshot();
    assert.deepEqual([namesOf(second), second.total], [["4", "3"], 4]);
    assert.equal(second.rows[1], first.rows[0]);
    stop();
    window.close();
    assert.equal(window.getSnapshot().state, "closed");
    await world.settled(60_000);
    assert.equal(world.clock.pendingTimers, 0);
    assert.equal(calls, 2);
  });

  it("sends its query, as the server's parameters", async () => {
    const world = new World();
    const options = {
      sortBy: ["status.restarts:desc", "metadata.name"],
      filter: "metadata.name!=2",
      offset: 1,
    };
    const window = openWindow(world.options({ ...options, fields: ["status.restarts"] }));
    await world.settled();
    const [{ searchParams }] = world.urls;
    assert.deepEqual(Object.fromEntries(searchParams), {
      watch: "true",
      sortBy: "status.restarts:desc,metadata.name",
      limit: "2",
      filter: "metadata.name!=2",
      offset: "1",
      fields: "status.restarts",
    });
    assert.deepEqual([namesOf(window.getSnapshot()), window.getSnapshot().total], [["3"], 2]);
    window.close();
  });

  it("has the columns and cells of a Table", async () => {
    const world = new World();
    const window = openWindow({ ...world.options({ sortBy: "column(Name)" }), table: true });
    await world.settled();
    const { columns, rows } = window.getSnapshot();
    assert.deepEqual(columns.slice(0, 2).map(({ name }) => name), ["Name", "Ready"]);
    assert.deepEqual(rows.map(({ cells }) => cells[0]), ["1", "2"]);
    assert.equal(rows[0].object.metadata.namespace, "a");
    world.informer.put(pod("a/0", 1_001));
    await world.settled(100);
    assert.deepEqual(window.getSnapshot().rows.map(({ cells }) => cells[0]), ["0", "1"]);
    assert.equal(window.getSnapshot().columns, columns);
    assert.equal(world.urls[0].searchParams.get("includeObject"), "Metadata");
    window.close();
  });

  it("has the same objects as rows that have not changed, also after it opens again or elsewhere", async () => {
    const world = new World();
    const window = openWindow(world.options());
    await world.settled();
    const [three, two] = window.getSnapshot().rows;
    world.informer.put(pod("a/3", 1_001, 1));
    world.cut();
    await world.settled(2_000);
    const { state, rows } = window.getSnapshot();
    assert.deepEqual([state, namesOf({ rows }), rows[1] === two], ["live", ["3", "2"], true]);
    assert.equal(rows[0].metadata?.resourceVersion, "1001");
    assert.notEqual(rows[0], three);
    window.show({ offset: 1 });
    await world.settled();
    assert.deepEqual([namesOf(window.getSnapshot()), window.getSnapshot().rows[0] === two], [
      ["2", "1"],
      true,
    ]);
    world.informer.put(pod("a/2", 1_002, 2));
    await world.settled(1_000);
    assert.equal(window.getSnapshot().rows[0].metadata?.resourceVersion, "1002");
    window.close();
  });

  it("shows another place, and keeps the rows until they are there", async () => {
    const world = new World();
    const window = openWindow(world.options());
    await world.settled();
    window.show({ offset: 1 });
    assert.deepEqual([window.getSnapshot().state, ...namesOf(window.getSnapshot())], ["live", "3", "2"]);
    await world.settled();
    assert.deepEqual([namesOf(window.getSnapshot()), window.getSnapshot().offset], [["2", "1"], 1]);
    window.show({ around: "a/3" });
    await world.settled();
    assert.deepEqual(namesOf(window.getSnapshot()), ["3", "2"]);
    assert.equal(world.urls.at(-1)?.searchParams.has("offset"), false);
    window.show({ sortBy: "status.restarts:desc" });
    await world.settled();
    assert.equal(world.urls.at(-1)?.searchParams.get("around"), "a/3");
    window.show({ offset: 1 });
    window.show({ sortBy: "status.restarts" });
    await world.settled();
    const { searchParams } = world.urls.at(-1)!;
    assert.deepEqual([searchParams.get("around"), searchParams.get("offset")], [null, "1"]);
    window.close();
  });

  it("is stale while the server is away, and opens itself again", async () => {
    const world = new World();
    const window = openWindow(world.options());
    await world.settled();
    const away = () => Promise.reject(new TypeError("connection refused"));
    world.answers.push(away, away);
    world.cut();
    await world.settled();
    const { state, error } = window.getSnapshot();
    assert.deepEqual([state, error?.message], ["stale", "cut"]);
    world.informer.put(pod("a/3", 1_001, 9));
    await world.settled(800);
    await world.settled(1_600);
    assert.equal(window.getSnapshot().state, "stale");
    assert.deepEqual(namesOf(window.getSnapshot()), ["3", "2"]);
    await world.settled(3_200);
    assert.deepEqual([window.getSnapshot().state, namesOf(window.getSnapshot())], ["live", ["2", "1"]]);
    window.close();
  });

  it("finds a server within ten seconds of its return, however long it was away", async () => {
    const world = new World();
    const window = openWindow(world.options({ random: () => 0.999 }));
    await world.settled();
    for (let i = 0; i < 400; i++) {
      world.answers.push(() => Promise.reject(new TypeError("connection refused")));
    }
    world.cut();
    for (let i = 0; i < 300; i++) await world.settled(1_000);
    assert.equal(window.getSnapshot().state, "stale");
    assert.ok(world.urls.length < 50, `${world.urls.length} requests in five minutes`);
    world.answers.length = 0;
    for (let i = 0; i < 10; i++) await world.settled(1_000);
    assert.equal(window.getSnapshot().state, "live");
    window.close();
  });

  it("stays live where a stream ends in good order and the next one begins", async () => {
    const world = new World();
    const window = openWindow(world.options());
    const states: string[] = [];
    window.subscribe(() => states.push(window.getSnapshot().state));
    await world.settled(5_000);
    world.end();
    await world.settled();
    assert.deepEqual([...new Set(states)], ["live"]);
    assert.equal(world.urls.length, 2);
    window.close();
  });

  it("is stale when nothing comes, and when the server has lost the API server", async () => {
    const world = new World();
    const window = openWindow(world.options());
    await world.settled();
    world.informer.lag = 200_000;
    await world.settled(30_000);
    assert.equal(window.getSnapshot().state, "stale");
    assert.match(window.getSnapshot().error?.message ?? "", /lost contact with the API server/);
    world.informer.lag = 0;
    await world.settled(30_000);
    assert.equal(window.getSnapshot().state, "live");
    world.isSilent = true;
    await world.settled(90_000);
    assert.equal(window.getSnapshot().state, "stale");
    assert.match(window.getSnapshot().error?.message ?? "", /said nothing for 90000 ms/);
    world.isSilent = false;
    await world.settled(1_000);
    assert.deepEqual([window.getSnapshot().state, window.getSnapshot().error], ["live", undefined]);
    window.close();
  });

  it("is stale from its first rows on where the server has lost the API server, until that is back", async () => {
    const world = new World();
    world.informer.lag = 200_000;
    const window = openWindow(world.options());
    await world.settled();
    assert.deepEqual(namesOf(window.getSnapshot()), ["3", "2"]);
    assert.equal(window.getSnapshot().state, "stale");
    world.informer.put(pod("a/4", 1_001, 0));
    await world.settled(1_000);
    assert.deepEqual(namesOf(window.getSnapshot()), ["4", "3"]);
    assert.equal(window.getSnapshot().state, "stale");
    world.informer.lag = 0;
    await world.settled(30_000);
    assert.equal(window.getSnapshot().state, "live");
    window.close();
  });

  it("asks again soon after it was open for a while, however often it had failed before", async () => {
    const world = new World();
    const isAway = () => new Response("away", { status: 503 });
    for (let i = 0; i < 6; i++) world.answers.push(isAway);
    const window = openWindow(world.options());
    await world.settled(120_000);
    assert.equal(window.getSnapshot().state, "live");
    world.answers.push(isAway);
    const before = world.urls.length;
    world.cut();
    await world.settled(5_000);
    assert.equal(world.urls.length, before + 2);
    assert.equal(window.getSnapshot().state, "live");
    window.close();
  });

  it("is refused with the reason, and asks again only for something else", async () => {
    const world = new World();
    const window = openWindow(world.options({ sortBy: "column(Nope)" }));
    await world.settled();
    const { state, error } = window.getSnapshot();
    assert.equal(state, "refused");
    assert.match(error?.message ?? "", /^the server answered 400: sortBy: there is no column "nope"/);
    await world.settled(600_000);
    assert.equal(world.urls.length, 1);
    window.show({ sortBy: "metadata.name" });
    await world.settled();
    assert.equal(window.getSnapshot().state, "live");
    window.close();
  });

  it("is no longer refused once it shows something else, whatever that is answered", async () => {
    const answers = [() => new Promise<Response>(() => {}), () => new Response("not now", { status: 503 })];
    for (const hasRows of [false, true]) {
      for (const answer of answers) {
        const world = new World();
        if (!hasRows) world.answers.push(() => new Response("no", { status: 403 }));
        const window = openWindow(world.options());
        await world.settled();
        if (hasRows) {
          world.answers.push(() => new Response("no", { status: 403 }));
          window.show({ offset: 1 });
          await world.settled();
        }
        assert.equal(window.getSnapshot().state, "refused");
        world.answers.push(answer);
        window.show({ offset: 2 });
        const { state, error, rows } = window.getSnapshot();
        assert.deepEqual(
          [state, error, rows.length],
          hasRows ? ["stale", undefined, 2] : [
            "connecting",
            undefined,
            0,
          ],
        );
        await world.settled();
        assert.equal(window.getSnapshot().state, hasRows ? "stale" : "connecting");
        window.close();
      }
    }
  });

  it("stays where it was when the object that it is around was deleted before it opens again", async () => {
    const world = new World([pod("a/1", 1, 1), pod("a/2", 2, 2), pod("a/3", 3, 3), pod("a/4", 4, 4)]);
    const window = openWindow(world.options({ around: "a/3" }));
    await world.settled();
    assert.deepEqual(namesOf(window.getSnapshot()), ["2", "3"]);
    world.informer.remove("a/3", 1_001);
    await world.settled(5_000);
    assert.deepEqual(namesOf(window.getSnapshot()), ["2", "4"]);
    world.end();
    await world.settled(1_000);
    assert.equal(window.getSnapshot().state, "live");
    assert.deepEqual(namesOf(window.getSnapshot()), ["2", "4"]);
    assert.equal(world.urls.at(-1)?.searchParams.get("offset"), "1");
    window.show({ around: "a/5" });
    await world.settled();
    assert.match(window.getSnapshot().error?.message ?? "", /"a\/5" is none of the objects/);
    window.close();
  });

  it("is around its object again when it opens again, wherever that is by then", async () => {
    const world = new World([pod("a/1", 1, 1), pod("a/2", 2, 2), pod("a/3", 3, 3), pod("a/4", 4, 4)]);
    const window = openWindow(world.options({ around: "a/3" }));
    await world.settled();
    const away = () => new Response("away", { status: 503 });
    for (const answers of [[], [away]]) {
      world.answers.push(...answers);
      world.urls.splice(0);
      await world.settled(5_000);
      world.end();
      await world.settled(2_000);
      assert.equal(window.getSnapshot().state, "live");
      const asked = world.urls.map((
        { searchParams },
      ) => [searchParams.get("around"), searchParams.get("offset")]);
      assert.deepEqual(asked, Array(answers.length + 1).fill(["a/3", null]));
    }
    world.informer.put(pod("a/3", 1_001, 0));
    await world.settled(100);
    world.cut();
    await world.settled(2_000);
    assert.deepEqual(namesOf(window.getSnapshot()), ["3", "1"]);
    window.close();
  });

  it("waits longer and longer for a server that takes its time to fail", async () => {
    const world = new World();
    for (let i = 0; i < 100; i++) {
      world.answers.push(() =>
        new Promise((resolve) =>
          world.clock.setTimeout(() => resolve(new Response("away", { status: 503 })), 3_000)
        )
      );
    }
    const window = openWindow(world.options());
    for (let i = 0; i < 60; i++) await world.settled(1_000);
    assert.ok(world.urls.length < 12, `${world.urls.length}`);
    window.close();
  });

  it("has an error also where a fetch function fails with none", async () => {
    const world = new World();
    world.answers.push(() => Promise.reject("no network"));
    const window = openWindow(world.options());
    await world.settled();
    const { error } = window.getSnapshot();
    assert.deepEqual([error instanceof Error, error?.message], [true, "no network"]);
    window.close();
  });

  it("requests by the runtime's own fetch function where none is given", async () => {
    const world = new World();
    const { fetch, ...options } = world.options();
    const own = globalThis.fetch;
    globalThis.fetch = (request) => fetch(request as Request);
    try {
      const window = openWindow(options);
      await world.settled();
      assert.equal(window.getSnapshot().state, "live");
      window.close();
    } finally {
      globalThis.fetch = own;
    }
  });

  it("sends no list of fields or sums that is empty", async () => {
    const world = new World();
    const window = openWindow(world.options({ fields: [] }));
    const groups = openGroups({ ...world.groups(), sum: [] });
    await world.settled();
    assert.deepEqual([window.getSnapshot().state, groups.getSnapshot().state], ["live", "live"]);
    window.close();
    groups.close();
  });

  it("throws for what is no window, and continues with what it shows", async () => {
    const world = new World();
    const window = openWindow(world.options());
    const groups = openGroups(world.groups());
    await world.settled();
    for (const query of [{ sortBy: undefined }, { sortBy: [] }, { limit: undefined }]) {
      assert.throws(() => window.show(query), TypeError);
    }
    for (const groupBy of [undefined, []]) assert.throws(() => groups.show({ groupBy }), TypeError);
    await world.settled();
    assert.deepEqual([window.getSnapshot().state, groups.getSnapshot().state], ["live", "live"]);
    assert.equal(world.urls.length, 2);
    window.close();
    groups.close();
  });

  it("waits longer and longer where streams end as soon as they begin", async () => {
    const world = new World();
    const rows = { metadata: {}, window: { total: 0, offset: 0 }, items: [] };
    const text = `${JSON.stringify({ type: "ROWS", object: rows })}\n`;
    for (let i = 0; i < 50; i++) world.answers.push(() => new Response(text));
    const window = openWindow(world.options());
    for (let i = 0; i < 15; i++) await world.settled(1_000);
    assert.equal(world.urls.length, 5);
    window.close();
  });

  it("stays refused where it was live until its stream ended", async () => {
    const world = new World();
    const window = openWindow(world.options());
    await world.settled(5_000);
    world.answers.push(() => new Response("no longer", { status: 403 }));
    world.end();
    await world.settled();
    assert.equal(window.getSnapshot().state, "refused");
    await world.settled(10_000);
    const { state, error } = window.getSnapshot();
    assert.deepEqual([state, error?.message], ["refused", "the server answered 403: no longer"]);
    assert.equal(world.urls.length, 2);
    window.close();
  });

  it("is stale when nothing comes for what is to be shown in place of its rows", async () => {
    const rows = { metadata: {}, window: { total: 0, offset: 0 }, items: [] };
    const frame = new TextEncoder().encode(`${JSON.stringify({ type: "ROWS", object: rows })}\n`);
    for (let ticks = 0; ticks < 6; ticks++) {
      const world = new World();
      let stream!: ReadableStreamDefaultController<Uint8Array>;
      world.answers.push(() => new Response(new ReadableStream({ start: (own) => void (stream = own) })));
      const window = openWindow(world.options());
      await world.settled();
      stream.enqueue(frame);
      await world.settled();
      assert.equal(window.getSnapshot().state, "live");
      world.answers.push(() => new Promise(() => {}));
      // On its way, and no longer wanted.
      stream.enqueue(frame);
      for (let i = 0; i < ticks; i++) await Promise.resolve();
      window.show({ offset: 1 });
      await world.settled(90_000);
      assert.equal(window.getSnapshot().state, "stale");
      assert.match(window.getSnapshot().error?.message ?? "", /said nothing for 90000 ms/);
      window.close();
    }
  });

  it("is stale, and asks again, where a fetch function ignores the signal and does not answer", async () => {
    const world = new World();
    const options = world.options();
    const waiting: ((response: Response) => void)[] = [];
    let isStuck = false;
    const fetch = (request: Request) =>
      isStuck ? new Promise<Response>((resolve) => void waiting.push(resolve)) : options.fetch(request);
    const window = openWindow({ ...options, fetch });
    await world.settled();
    isStuck = true;
    window.show({ offset: 1 });
    await world.settled(90_000);
    const { state, error } = window.getSnapshot();
    assert.deepEqual([state, error?.message], ["stale", "the server has said nothing for 90000 ms"]);
    isStuck = false;
    await world.settled(1_000);
    assert.deepEqual([window.getSnapshot().state, window.getSnapshot().offset], ["live", 1]);
    isStuck = true;
    window.show({ offset: 0 });
    await world.settled();
    window.close();
    await world.settled();
    assert.equal(world.clock.pendingTimers, 0);
    let cancelled = 0;
    const body = () => new ReadableStream({ cancel: () => void cancelled++ });
    for (const resolve of waiting) resolve(new Response(body()));
    await world.settled();
    assert.deepEqual([waiting.length, cancelled], [2, 2]);
  });

  it("asks again where the server had failed, had no time, or came too early", async () => {
    for (const status of [304, 408, 410, 425, 429, 500, 503]) {
      const world = new World();
      world.answers.push(() => new Response(status === 304 ? null : "not now", { status }));
      const window = openWindow(world.options());
      await world.settled();
      assert.equal(window.getSnapshot().state, "connecting");
      await world.settled(1_000);
      assert.equal(window.getSnapshot().state, "live");
      window.close();
    }
  });

  it("shows nothing more of a stream once a listener wants something else", async () => {
    const world = new World();
    const place = { metadata: {}, window: { total: 1, offset: 0 } };
    const frames = [
      { type: "ROWS", object: { ...place, items: [{ name: "first" }] } },
      { type: "ROWS", object: { ...place, items: [{ name: "second" }] } },
    ];
    world.answers.push(() => new Response(frames.map((frame) => `${JSON.stringify(frame)}\n`).join("")));
    const window = openWindow(world.options());
    const stop = window.subscribe(() => {
      stop();
      world.answers.push(() => new Promise(() => {}));
      window.show({ offset: 1 });
    });
    await world.settled();
    assert.deepEqual(window.getSnapshot().rows, [{ name: "first" }]);
    window.close();
  });

  it("waits as long as a busy server says", async () => {
    const world = new World();
    world.answers.push(() => new Response("busy", { status: 429, headers: { "Retry-After": "20" } }));
    const window = openWindow(world.options());
    await world.settled(19_000);
    assert.equal(world.urls.length, 1);
    await world.settled(1_000);
    assert.equal(window.getSnapshot().state, "live");
    window.close();
  });

  it("begins again where a frame does not fit", async () => {
    const window = { total: 1, offset: 0 };
    const rows = { type: "ROWS", object: { metadata: {}, window, items: [{}] } };
    const changes = (...changes: readonly object[]) => ({
      type: "CHANGES",
      object: { metadata: {}, window, changes },
    });
    const cases: readonly (readonly [frames: readonly object[], error: string])[] = [
      [[rows, changes({ op: "remove", at: 7 })], "7 is no place among 1 rows"],
      [[rows, changes({ op: "update", at: -1 })], "-1 is no place among 1 rows"],
      [[rows, changes({ op: "update", at: 1 })], "1 is no place among 1 rows"],
      [[rows, changes({ op: "insert", at: 2 })], "2 is no place among 2 rows"],
      [[rows, changes({ op: "insert", at: 0.5 })], "0.5 is no place among 2 rows"],
      [[rows, changes({ op: "move", from: 0, to: "0" })], '"0" is no place among 1 rows'],
      [[rows, changes({ op: "turn" })], 'there is no change "turn"'],
      [[rows, { type: "CHANGES", object: { metadata: {}, window } }], 'a window continues with "CHANGES"'],
      [[rows, { type: "ADDED", object: {} }], 'a window continues with "ADDED"'],
      [
        [rows, { type: "MORE", object: { metadata: {}, window, changes: [] } }],
        'a window continues with "MORE"',
      ],
      [[changes()], 'a window begins with "CHANGES"'],
      [[{ type: "ADDED", object: {} }], "the server has no windows: is it an API server, and no cache?"],
      [[{ type: "ROWS", object: { metadata: {}, window } }], "a window begins without rows"],
      [[{ type: "ROWS", object: { metadata: {}, items: [] } }], "a frame has no place"],
      [[{ type: "ROWS", object: { metadata: {}, window: { total: 1 }, items: [] } }], "a frame has no place"],
      [
        [{ type: "ROWS", object: { metadata: {}, window: { offset: 1 }, items: [] } }],
        "a frame has no place",
      ],
    ];
    for (const [frames, error] of cases) {
      const world = new World();
      const text = frames.map((frame) => `${JSON.stringify(frame)}\n`).join("");
      world.answers.push(() => new Response(text));
      const opened = openWindow(world.options());
      await world.settled();
      assert.equal(opened.getSnapshot().error?.message, error);
      assert.notEqual(opened.getSnapshot().state, "live");
      await world.settled(1_000);
      assert.equal(opened.getSnapshot().state, "live");
      opened.close();
    }
  });

  it("calls the other listeners where one throws, logs that, and reads on", async () => {
    const world = new World();
    const logger = new LogRecorder();
    const window = openWindow(world.options({ logger }));
    const shown: unknown[] = [];
    window.subscribe(() => {
      throw new Error("cannot draw");
    });
    window.subscribe(() => Promise.reject(new Error("cannot draw later")));
    window.subscribe(() => shown.push([window.getSnapshot().state, ...namesOf(window.getSnapshot())]));
    await world.settled();
    world.informer.put(pod("a/4", 1_001, 0));
    await world.settled(100);
    assert.deepEqual(shown, [["live", "3", "2"], ["live", "4", "3"]]);
    assert.equal(world.urls.length, 1);
    assert.equal(world.urls[0].searchParams.has("logger"), false);
    window.close();
    await settle();
    assert.deepEqual(shown.at(-1), ["closed", "4", "3"]);
    for (const why of ["cannot draw", "cannot draw later"]) {
      assert.equal(logger.of("error").filter((line) => line.endsWith(`listener threw: ${why}`)).length, 3);
    }
  });

  it("says what is missing", () => {
    const { clock } = new World();
    assert.throws(() => openWindow({ url: URL_OF_PODS, limit: 1, clock }), /say by what its rows are sorted/);
    assert.throws(
      () => openWindow({ url: URL_OF_PODS, sortBy: "a", clock }),
      /say how many it has in `limit`/,
    );
    const relative = () => openWindow({ url: "/api/v1/pods", sortBy: "a", limit: 1, clock });
    assert.throws(
      relative,
      new TypeError(
        'Cannot open the window of "/api/v1/pods": it is no URL: outside of a page it is absolute',
      ),
    );
    const query = { url: URL_OF_PODS, sortBy: "a", limit: 1, clock };
    for (const staleAfterMs of [0, NaN]) {
      assert.throws(() => openWindow({ ...query, staleAfterMs }), RangeError);
    }
    assert.throws(() => openWindow({ ...query, sortBy: [] }), /say by what its rows are sorted/);
    for (const groupBy of [undefined, []]) {
      assert.throws(
        () => openGroups({ url: URL_OF_PODS, clock, ...(groupBy && { groupBy }) }),
        /say by which values/,
      );
    }
  });

  it("is refused by a stream that says so, and opened again at once where its state has expired", async () => {
    const refused = new World();
    const status = { kind: "Status", code: 403, message: "no more" };
    refused.answers.push(() => new Response(framesOf({ type: "ERROR", object: status })));
    const window = openWindow(refused.options());
    await refused.settled(60_000);
    assert.equal(window.getSnapshot().state, "refused");
    assert.match(window.getSnapshot().error?.message ?? "", /no more/);
    assert.equal(refused.urls.length, 1);
    assert.equal(refused.clock.pendingTimers, 0);
    window.close();

    const expired = new World();
    const feed = new Feed();
    expired.answers.push(() => feed.response());
    const other = openWindow(expired.options());
    const states: string[] = [];
    other.subscribe(() => states.push(other.getSnapshot().state));
    await expired.settled();
    feed.send(ROWS);
    await expired.settled(5_000);
    feed.send({ type: "ERROR", object: { kind: "Status", code: 410 } });
    await expired.settled(5_000);
    assert.deepEqual([...new Set(states)], ["live"]);
    assert.equal(expired.urls.length, 2);
    other.close();
  });

  it("is stale at once where a stream breaks with any other error", async () => {
    const world = new World();
    const feed = new Feed();
    world.answers.push(() => feed.response());
    const window = openWindow(world.options());
    await world.settled();
    feed.send(ROWS);
    await world.settled(5_000);
    world.answers.push(() => new Promise(() => {}));
    feed.send({ type: "ERROR", object: { kind: "Status", code: 500, message: "lost" } });
    await world.settled();
    assert.equal(window.getSnapshot().state, "stale");
    assert.match(window.getSnapshot().error?.message ?? "", /lost/);
    window.close();
  });

  it("is stale where the next stream shows nothing for two seconds, or the reason is known earlier", async () => {
    for (const answer of [() => new Promise<Response>(() => {}), () => new Response("", { status: 503 })]) {
      const world = new World();
      const window = openWindow(world.options());
      await world.settled(5_000);
      for (let i = 0; i < 9; i++) world.answers.push(answer);
      world.end();
      await world.settled(1_999);
      const isEarly = window.getSnapshot().state === "stale";
      await world.settled(1);
      const { state, error } = window.getSnapshot();
      const message = isEarly ? "the server answered 503" : "the window is opened again";
      assert.deepEqual([state, error?.message], ["stale", message]);
      window.close();
    }
  });

  it("moves, inserts, updates and removes rows, at both ends too", async () => {
    const world = new World();
    const feed = new Feed();
    world.answers.push(() => feed.response());
    const window = openWindow(world.options());
    await world.settled();
    const of = { metadata: { resourceVersion: "1" }, window: { total: 9, offset: 0 } };
    const row = (name: string) => ({ metadata: { name } });
    feed.send({ type: "ROWS", object: { ...of, items: Array.from("abc", row) } });
    const steps: readonly (readonly [change: object, rows: string])[] = [
      [{ op: "move", from: 0, to: 2 }, "bca"],
      [{ op: "move", from: 2, to: 1 }, "bac"],
      [{ op: "insert", at: 3, item: row("d") }, "bacd"],
      [{ op: "insert", at: 0, item: row("e") }, "ebacd"],
      [{ op: "update", at: 4, item: row("f") }, "ebacf"],
      [{ op: "remove", at: 4 }, "ebac"],
      [{ op: "remove", at: 0 }, "bac"],
    ];
    for (const [change, rows] of steps) {
      feed.send({ type: "CHANGES", object: { ...of, changes: [change] } });
      await world.settled();
      assert.equal(namesOf(window.getSnapshot()).join(""), rows);
    }
    window.close();
  });

  it("is as old as the last frame that says so, and has its rows and version from the last ones that have them", async () => {
    const world = new World();
    const feed = new Feed();
    world.answers.push(() => feed.response({ Age: "200" }));
    const window = openWindow(world.options());
    await world.settled();
    const shown = async (frame: object) => {
      feed.send(frame);
      await world.settled();
      const { state, resourceVersion } = window.getSnapshot();
      return [state, resourceVersion];
    };
    const bookmark = (resourceVersion: string, age?: string) => ({
      type: "BOOKMARK",
      object: {
        metadata: {
          resourceVersion,
          ...(age !== undefined && { annotations: { [AGE_ANNOTATION]: age } }),
        },
      },
    });
    const changes = (resourceVersion: string, ...changes: readonly object[]) => ({
      type: "CHANGES",
      object: { metadata: { resourceVersion }, window: { total: 1, offset: 0 }, changes },
    });
    assert.deepEqual(await shown(ROWS), ["stale", "1"]);
    assert.deepEqual(await shown(changes("2")), ["stale", "2"]);
    const { rows } = window.getSnapshot();
    assert.deepEqual(await shown(bookmark("3")), ["live", "3"]);
    assert.deepEqual(await shown(changes("4")), ["live", "4"]);
    assert.equal(window.getSnapshot().rows, rows);
    assert.deepEqual(await shown(bookmark("5", "90001")), ["stale", "5"]);
    assert.deepEqual(await shown(bookmark("6", "90000")), ["live", "6"]);
    window.close();
  });

  it("is stale where the next stream shows nothing, and live for as long as the next one does", async () => {
    const world = new World();
    const window = openWindow(world.options());
    await world.settled(5_000);
    world.answers.push(() => new Response(""));
    world.end();
    await world.settled();
    assert.equal(window.getSnapshot().state, "stale");
    assert.match(window.getSnapshot().error?.message ?? "", /ended before it showed anything/);
    await world.settled(5_000);
    const states = new Set<string>();
    window.subscribe(() => states.add(window.getSnapshot().state));
    world.end();
    await world.settled(5_000);
    assert.deepEqual([...states], ["live"]);
    window.close();
  });

  it("ends for good: nothing is requested, called or changed any more, and no timer is left", async () => {
    const world = new World();
    const feed = new Feed();
    world.answers.push(() => feed.response(), () => new Promise<Response>(() => {}));
    const window = openWindow(world.options());
    await world.settled();
    feed.send(ROWS);
    await world.settled(5_000);
    feed.end();
    await world.settled();
    window.close();
    const last = window.getSnapshot();
    assert.equal(last.state, "closed");
    assert.equal(world.clock.pendingTimers, 0);
    const requests = world.urls.length;
    window.show({ offset: 1 });
    window.close();
    await world.settled(60_000);
    assert.equal(window.getSnapshot(), last);
    assert.equal(world.urls.length, requests);
    const paused = new World();
    paused.answers.push(() => new Response("", { status: 503 }));
    const other = openWindow(paused.options());
    await paused.settled();
    assert.equal(paused.clock.pendingTimers, 1);
    other.close();
    await paused.settled();
    assert.equal(paused.clock.pendingTimers, 0);
  });

  it("calls no listener any more that another one has removed", async () => {
    const world = new World();
    const window = openWindow(world.options());
    const calls: string[] = [];
    window.subscribe(() => {
      calls.push("first");
      stop();
    });
    const stop = window.subscribe(() => calls.push("second"));
    await world.settled();
    assert.deepEqual(calls, ["first"]);
    window.subscribe(() => window.close());
    window.subscribe(() => calls.push("last"));
    world.informer.put(pod("a/9", 1_001, 9));
    await world.settled(1_000);
    assert.deepEqual(calls, ["first", "first", "first", "last"]);
  });

  it("calls a listener that was given twice once for each, until each is ended", async () => {
    const world = new World();
    const window = openWindow(world.options());
    let calls = 0;
    const listener = () => calls++;
    const stop = window.subscribe(listener);
    window.subscribe(listener);
    await world.settled();
    assert.equal(calls, 2);
    stop();
    stop();
    world.informer.put(pod("a/9", 1_001, 0));
    await world.settled(1_000);
    assert.equal(calls, 3);
    window.close();
  });

  it("calls a listener that another one has added from the next change on", async () => {
    const world = new World();
    const window = openWindow(world.options());
    let calls = 0;
    const add = () => {
      calls++;
      window.subscribe(() => add());
    };
    window.subscribe(add);
    await world.settled();
    assert.equal(calls, 1);
    window.close();
  });

  it("says what a server said that is no Status", async () => {
    const world = new World();
    world.answers.push(() => Response.json({ problem: "no such place" }, { status: 404 }));
    const window = openWindow(world.options());
    await world.settled();
    assert.match(window.getSnapshot().error?.message ?? "", /answered 404: .*no such place/);
    window.close();
  });

  it("says why by the text, the reason or the line of the answer, and by no more of it than is read", async () => {
    const cut = () => new ReadableStream({ start: (controller) => controller.error(new TypeError("cut")) });
    const answers: readonly (readonly [Response, string])[] = [
      [new Response("x".repeat(1_500), { status: 403 }), `403: ${"x".repeat(1_000)}`],
      [new Response(null, { status: 403, statusText: "Not Today" }), "403: Not Today"],
      [new Response(cut(), { status: 403, statusText: "Not Today" }), "403: Not Today"],
      [Response.json({ kind: "Status", reason: "Forbidden" }, { status: 403 }), "403: Forbidden"],
      [Response.json({ kind: "Status" }, { status: 403 }), "403"],
    ];
    for (const [answer, message] of answers) {
      const world = new World();
      world.answers.push(() => answer);
      const window = openWindow(world.options());
      // deno-lint-ignore no-await-in-loop -- one after the other
      await world.settled();
      assert.equal(window.getSnapshot().error?.message, `the server answered ${message}`);
      window.close();
    }
  });

  it("shows a state that was at each time, through cuts, and the last one in the end", async () => {
    const step = fc.record({
      name: fc.integer({ min: 0, max: 9 }),
      restarts: fc.integer({ min: 0, max: 3 }),
      kind: fc.constantFrom("put", "put", "put", "remove", "relist", "wait", "cut", "end", "place"),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const world = new World([]);
        const content = new Map<string, TestObject>();
        let version = 1_000;
        const restartsOf = ({ status }: TestObject) => (status as { restarts: number }).restarts;
        const sorted = () =>
          [...content].sort(([a, x], [b, y]) => restartsOf(x) - restartsOf(y) || (a < b ? -1 : 1))
            .map(([, { metadata }]) => `${metadata?.name} ${metadata?.resourceVersion}`);
        const were = new Map([[String(version), sorted()]]);
        const window = openWindow<TestObject>(world.options({ limit: 4 }));
        const check = () => {
          const { state, rows, offset, total, resourceVersion } = window.getSnapshot();
          if (state === "connecting") return;
          const all = were.get(resourceVersion)!;
          const shown = rows.map(({ metadata }) => `${metadata?.name} ${metadata?.resourceVersion}`);
          assert.deepEqual([total, shown], [all.length, all.slice(offset, offset + 4)]);
        };
        // What a listener throws ends its stream, and is not seen here.
        const wrong: unknown[] = [];
        window.subscribe(() => {
          try {
            check();
          } catch (error) {
            wrong.push(error);
          }
        });
        for (const { name, restarts, kind } of steps) {
          const key = `a/${name}`;
          if (kind === "wait") await world.settled(100);
          else if (kind === "cut") world.cut();
          else if (kind === "end") world.end();
          else if (kind === "place") window.show({ offset: restarts });
          else {
            version++;
            const next = pod(key, version, restarts);
            if (kind === "relist") world.informer.relist([...content.values()], version);
            else if (kind === "put") {
              content.set(key, next);
              world.informer.put(next);
            } else if (content.delete(key)) world.informer.remove(key, version);
            were.set(String(version), sorted());
          }
        }
        await world.settled(60_000);
        const { state, rows, offset } = window.getSnapshot();
        assert.equal(state, "live");
        check();
        if (wrong.length > 0) throw wrong[0];
        assert.deepEqual(
          rows.map(({ metadata }) => metadata?.name),
          sorted().slice(offset, offset + 4).map((text) => text.split(" ")[0]),
        );
        window.close();
      }),
      propertyOptions(60),
    );
  });
});

describe("openGroups", () => {
  it("counts objects, live", async () => {
    const world = new World();
    const groups = openGroups({
      ...world.groups(),
      groupBy: ["metadata.namespace"],
      sum: ["status.restarts"],
    });
    await world.settled();
    assert.deepEqual(groups.getSnapshot().rows, [
      { group: { "metadata.namespace": "a" }, count: 3, sums: { "status.restarts": 6 } },
    ]);
    await world.settled(100);
    world.informer.put(pod("b/1", 1_001, 5));
    await world.settled(100);
    assert.deepEqual(groups.getSnapshot().rows.map(({ count }) => count), [3, 1]);
    groups.close();
  });
});
