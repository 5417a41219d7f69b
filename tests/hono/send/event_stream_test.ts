import assert from "node:assert/strict";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import type { ReadApiOptions } from "@listwatch/cache/hono";
import { FakeInformer, object } from "../fake_informer.ts";
import { describe, it } from "../storages.ts";
import { readApi } from "../read_api.ts";

const PATH = "/api/v1/pods?watch=1";

/** What an `EventSource` dispatches, and its last event id. */
class EventReader {
  readonly response: Response;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = "";
  lastEventId = "";
  retryMs: number | undefined;

  constructor(response: Response) {
    this.response = response;
    this.#reader = response.body!.getReader();
  }

  static async open(
    api: ReturnType<typeof readApi>,
    lastEventId?: string,
    path = PATH,
    accept = "text/event-stream",
  ): Promise<EventReader> {
    const headers = { "Accept": accept, ...(lastEventId && { "Last-Event-ID": lastEventId }) };
    const response = await api.request(path, { headers });
    assert.equal(response.status, 200, response.ok ? "" : await response.text());
    assert.equal(response.headers.get("Content-Type"), "text/event-stream; charset=utf-8");
    assert.match(response.headers.get("Cache-Control")!, /no-transform/);
    assert.equal(response.headers.get("X-Accel-Buffering"), "no");
    return new EventReader(response);
  }

  /** The next event, in short; `undefined` at the end. As in the specification, by lines. */
  async next(): Promise<string | undefined> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end < 0) {
        const { done, value } = await this.#reader.read();
        if (done) return undefined;
        this.#text += this.#decoder.decode(value, { stream: true });
        continue;
      }
      const lines = this.#text.slice(0, end).split("\n");
      this.#text = this.#text.slice(end + 2);
      let [data, name, id] = ["", "message", undefined as string | undefined];
      for (const line of lines) {
        const [, field, value] = /^([^:]*)(?:: ?(.*))?$/s.exec(line)!;
        if (field === "data") data = value;
        else if (field === "event") name = value;
        else if (field === "id") id = value ?? "";
        else if (field === "retry") this.retryMs = Number(value);
      }
      if (id !== undefined) this.lastEventId = id;
      if (data === "") continue;
      const { type, object, code } = JSON.parse(data);
      const of = name === "expired" ? String(code) : `${type} ${object.metadata.name ?? ""}`;
      return `${name === "message" ? "" : `${name} `}${of}`.trim() + ` @${this.lastEventId}`;
    }
  }

  async take(count: number): Promise<(string | undefined)[]> {
    const events = [];
    for (let i = 0; i < count; i++) events.push(await this.next());
    return events;
  }

  async cancel(): Promise<void> {
    await this.#reader.cancel();
  }
}

function apiOf(options: Partial<ReadApiOptions> = {}) {
  const clock = new FakeClock();
  const informer = FakeInformer.with([object("shop/a", 5), object("shop/b", 3)], 10);
  const api = readApi({
    resources: [{ informer, resource: "v1/pods" }],
    allowAnonymous: true,
    clock,
    ...options,
  });
  return { api, informer, clock };
}

describe("readApi, a watch as text/event-stream", () => {
  it("begins with the objects, which have no id, then has changes, whose id is their version", async () => {
    const { api, informer } = apiOf();
    const events = await EventReader.open(api);
    assert.deepEqual(await events.take(3), ["ADDED a @", "ADDED b @", "BOOKMARK @10"]);
    assert.equal(events.retryMs, 1_000);
    informer.put(object("shop/c", 11, { data: "line\nbreak \u2028 é \r" }));
    informer.put(object("shop/a", 12));
    informer.remove("shop/b", 13);
    assert.deepEqual(await events.take(3), ["ADDED c @11", "MODIFIED a @12", "DELETED b @13"]);
    await events.cancel();
  });

  it("is what its media type says in any case, and with any parameters", async () => {
    const { api } = apiOf();
    const old = await EventReader.open(api, undefined, "/api/v1/watch/pods");
    assert.deepEqual(await old.take(1), ["ADDED a @"]);
    await old.cancel();
    for (
      const accept of ["Text/Event-Stream", "text/event-stream; q=0.5", "text/event-stream;charset=utf-8"]
    ) {
      const events = await EventReader.open(api, undefined, PATH, accept);
      assert.deepEqual(await events.take(1), ["ADDED a @"]);
      await events.cancel();
    }
  });

  it("has no id at a late change, from which events would come again", async () => {
    const { api, informer } = apiOf();
    const events = await EventReader.open(api);
    await events.take(3);
    informer.put(object("shop/c", 12));
    informer.put(object("shop/late", 8));
    assert.deepEqual(await events.take(2), ["ADDED c @12", "ADDED late @12"]);
    await events.cancel();
    // It may have been late for this reader, and comes once more.
    const resumed = await EventReader.open(api, "12");
    assert.deepEqual(await resumed.take(1), ["ADDED late @"]);
    await resumed.cancel();
  });

  it("resumes after Last-Event-ID without repeating or losing an event, whatever the URL says", async () => {
    const { api, informer } = apiOf();
    informer.put(object("shop/c", 11));
    informer.put(object("shop/d", 12));
    for (
      const path of [
        PATH,
        `${PATH}&resourceVersion=3&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`,
      ]
    ) {
      const events = await EventReader.open(api, "11", path);
      assert.deepEqual(await events.take(1), ["ADDED d @12"]);
      await events.cancel();
    }
    // A merged version has many digits; of one API server there is none.
    const headers = { "Accept": "text/event-stream", "Last-Event-ID": "1".repeat(25) };
    assert.equal((await api.request(PATH, { headers })).status, 500);
    for (const id of ["nonsense", "-1", "0", "1e9"]) {
      const events = await EventReader.open(api, id);
      assert.deepEqual(await events.take(1), ["ADDED a @"]);
      await events.cancel();
    }
  });

  it("reports to a reader from before the window that its place has expired, and begins again", async () => {
    const { api, informer } = apiOf({ eventWindow: 2 });
    for (let i = 11; i < 20; i++) informer.put(object("shop/a", i));
    const events = await EventReader.open(api, "11");
    assert.deepEqual(await events.take(4), ["expired 410 @", "ADDED a @", "ADDED b @", "BOOKMARK @19"]);
    informer.put(object("shop/c", 20));
    assert.deepEqual(await events.take(1), ["ADDED c @20"]);
    await events.cancel();
  });

  it("ends a watch whose server was restored with expired and an empty id", async () => {
    const { api, informer } = apiOf();
    const events = await EventReader.open(api);
    await events.take(3);
    informer.relist([object("shop/z", 4)], 5);
    assert.deepEqual(await events.take(2), ["expired 410 @", undefined]);
    const again = await EventReader.open(api, events.lastEventId);
    assert.deepEqual(await again.take(2), ["ADDED z @", "BOOKMARK @5"]);
    await again.cancel();
  });

  it("never has an id from which a relist would be missed", async () => {
    const { api, informer } = apiOf();
    const events = await EventReader.open(api);
    await events.take(3);
    informer.relist([object("shop/a", 5), object("shop/n", 15), object("shop/m", 14)], 20);
    assert.deepEqual(await events.take(4), ["DELETED b @10", "ADDED m @14", "ADDED n @15", "BOOKMARK @20"]);
    await events.cancel();
    for (const id of ["10", "14", "15"]) {
      const again = await EventReader.open(api, id);
      assert.deepEqual(await again.take(1), ["expired 410 @"], id);
      await again.cancel();
    }
  });

  it("has a bookmark as a sign of life, ends with the watch, and counts as one", async () => {
    const { api, clock, informer } = apiOf({ maxWatches: 1, bookmarkIntervalMs: 30_000 });
    const events = await EventReader.open(api, undefined, `${PATH}&timeoutSeconds=45`);
    await events.take(3);
    assert.equal((await api.request(PATH)).status, 429);
    informer.bookmark(44);
    await clock.advance(30_000);
    assert.deepEqual(await events.take(1), ["BOOKMARK @44"]);
    await clock.advance(15_000);
    let last: string | undefined = "";
    for (let event = await events.next(); event !== undefined; event = await events.next()) last = event;
    assert.match(last, /^(BOOKMARK @44)?$/);
    const second = await EventReader.open(api);
    await second.cancel();
    assert.equal((await api.request("/api/v1/pods")).status, 200);
    assert.equal(clock.pendingTimers, 0);
  });

  it("is authorized as the watch that it is, and takes its selectors and forms", async () => {
    const refused = apiOf({ allowAnonymous: undefined, authorize: ({ verb }) => verb === "list" });
    const headers = { Accept: "text/event-stream" };
    assert.equal((await refused.api.request(PATH, { headers })).status, 403);
    const { api, informer } = apiOf();
    informer.put(object("shop/l", 11, { labels: { app: "x" } }));
    const events = await EventReader.open(api, undefined, `${PATH}&labelSelector=app`);
    assert.deepEqual(await events.take(2), ["ADDED l @", "BOOKMARK @11"]);
    await events.cancel();
    const table = await api.request(PATH, {
      headers: { Accept: "text/event-stream, application/json;as=Table;v=v1;g=meta.k8s.io" },
    });
    const reader = table.body!.getReader();
    assert.match(new TextDecoder().decode((await reader.read()).value), /^retry: 1000\n\n/);
    informer.put(object("shop/m", 12));
    let text = "";
    while (!text.includes("\n\n")) text += new TextDecoder().decode((await reader.read()).value);
    assert.match(text, /"kind":"Table"/);
    await reader.cancel();
    const one = "/api/v1/namespaces/shop/pods/a";
    for (const path of ["/api/v1/pods", one, `${one}?watch=1`]) {
      assert.equal((await api.request(path, { headers })).status, 406);
    }
  });
});
