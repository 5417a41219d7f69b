import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { configMap, FakeClock, pod } from "@listwatch/cache/testing";
import { CountingSignal } from "../counting_signal.ts";
import { call, INITIAL_EVENTS, summary, watch, withServer } from "./helpers.ts";

const CONFIG_MAPS = "/api/v1/namespaces/shop/configmaps";
const inShop = { namespace: "shop" };

describe("InMemoryApiServer: a watch from a resourceVersion", () => {
  it("replays the events after it, and continues with new ones", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", inShop));
      const list = (await call(server, "GET", CONFIG_MAPS)).body;
      server.create("v1/configmaps", configMap("b", inShop));
      server.patch("v1/configmaps", "shop/a", { data: { n: "1" } });
      const reader = await watch(
        server,
        `${CONFIG_MAPS}?watch=1&resourceVersion=${list.metadata.resourceVersion}`,
      );
      assert.equal(reader.response.headers.get("Content-Type"), "application/json");
      assert.deepEqual(summary(await reader.take(2)), ["ADDED shop/b 3", "MODIFIED shop/a 4"]);
      server.delete("v1/configmaps", "shop/a");
      const [event] = await reader.take(1);
      assert.deepEqual(summary([event]), ["DELETED shop/a 5"]);
      assert.deepEqual(event.object.data, { n: "1" }, "a DELETED event carries the last state");
      assert.deepEqual([event.object.kind, event.object.apiVersion], ["ConfigMap", "v1"]);
    }));

  it("receives its own resource and namespace only", () =>
    withServer({}, async (server) => {
      const reader = await watch(server, `${CONFIG_MAPS}?watch=1&resourceVersion=1`);
      server.create("v1/pods", pod("a", inShop));
      server.create("v1/configmaps", configMap("a", { namespace: "other" }));
      server.create("v1/configmaps", configMap("a", inShop));
      assert.deepEqual(summary(await reader.take(1)), ["ADDED shop/a 4"]);
    }));

  it("that is compacted gets one ERROR event with status 200, and ends", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", inShop));
      server.compact();
      const reader = await watch(server, `${CONFIG_MAPS}?watch=1&resourceVersion=1`);
      assert.equal(reader.response.status, 200);
      assert.deepEqual(await reader.rest(), [{
        type: "ERROR",
        object: {
          kind: "Status",
          apiVersion: "v1",
          metadata: {},
          status: "Failure",
          message: "too old resource version: 1 (2)",
          reason: "Expired",
          code: 410,
        },
      }]);
      const present = await watch(server, `${CONFIG_MAPS}?watch=1&resourceVersion=2`);
      server.create("v1/configmaps", configMap("b", inShop));
      assert.deepEqual(summary(await present.take(1)), ["ADDED shop/b 3"]);
    }));

  it("continues over a compaction while it is open", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", inShop));
      const reader = await watch(server, `${CONFIG_MAPS}?watch=1&resourceVersion=1`);
      server.compact();
      server.create("v1/configmaps", configMap("b", inShop));
      assert.deepEqual(summary(await reader.take(2)), ["ADDED shop/a 2", "ADDED shop/b 3"]);
    }));

  it("from the future is silent until then", () =>
    withServer({}, async (server) => {
      const reader = await watch(server, `${CONFIG_MAPS}?watch=1&resourceVersion=3`);
      for (const name of ["a", "b", "c"]) server.create("v1/configmaps", configMap(name, inShop));
      assert.deepEqual(summary(await reader.take(1)), ["ADDED shop/c 4"]);
    }));

  it("that is malformed is refused", () =>
    withServer({}, async (server) => {
      const { status, body } = await call(server, "GET", `${CONFIG_MAPS}?watch=1&resourceVersion=abc`);
      assert.deepEqual([status, body.message], [
        500,
        'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
      ]);
    }));
});

describe("InMemoryApiServer: a watch without a resourceVersion, or from 0", () => {
  it("begins with the present objects, and then follows", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("b", inShop));
      server.create("v1/configmaps", configMap("a", inShop));
      const reader = await watch(server, `${CONFIG_MAPS}?watch=1`);
      assert.deepEqual(summary(await reader.take(2)), ["ADDED shop/a 3", "ADDED shop/b 2"]);
      server.patch("v1/configmaps", "shop/a", { data: { n: "1" } });
      server.delete("v1/configmaps", "shop/a");
      assert.deepEqual(summary(await reader.take(2)), ["MODIFIED shop/a 4", "DELETED shop/a 5"]);
    }));

  it("means the same in all its forms", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", inShop));
      for (const query of ["watch=1", "watch=1&resourceVersion=0", "watch=1&resourceVersion="]) {
        // deno-lint-ignore no-await-in-loop
        const reader = await watch(server, `${CONFIG_MAPS}?${query}`);
        // deno-lint-ignore no-await-in-loop
        assert.deepEqual(summary(await reader.take(1)), ["ADDED shop/a 2"]);
      }
    }));
});

describe("InMemoryApiServer: a watch with selectors", () => {
  it("receives an object that leaves as DELETED, with its state before, at the version of the change", () =>
    withServer({}, async (server) => {
      const reader = await watch(
        server,
        `${CONFIG_MAPS}?watch=1&resourceVersion=1&labelSelector=color%3Dred`,
      );
      server.create("v1/configmaps", configMap("paint", inShop));
      const paint = (color: string, n: string) =>
        server.patch("v1/configmaps", "shop/paint", { metadata: { labels: { color } }, data: { n } });
      paint("red", "1");
      paint("red", "2");
      paint("blue", "3");
      paint("green", "4");
      paint("red", "5");
      server.delete("v1/configmaps", "shop/paint");
      const events = await reader.take(5);
      assert.deepEqual(summary(events), [
        "ADDED shop/paint 3",
        "MODIFIED shop/paint 4",
        "DELETED shop/paint 5",
        "ADDED shop/paint 7",
        "DELETED shop/paint 8",
      ]);
      assert.deepEqual([events[2].object.metadata.labels, events[2].object.data], [{ color: "red" }, {
        n: "2",
      }]);
    }));

  it("receives the same events by replay", () =>
    withServer({}, async (server) => {
      server.create("v1/pods", pod("p", { namespace: "shop", phase: "Running" }));
      server.patch("v1/pods", "shop/p", { status: { phase: "Failed" } });
      const path = "/api/v1/pods?watch=1&resourceVersion=1&fieldSelector=status.phase%3DRunning";
      const events = await (await watch(server, path)).take(2);
      assert.deepEqual(summary(events), ["ADDED shop/p 2", "DELETED shop/p 3"]);
      assert.equal(events[1].object.status.phase, "Running");
    }));

  it("can follow one object by its name", () =>
    withServer({}, async (server) => {
      const reader = await watch(
        server,
        `${CONFIG_MAPS}?watch=1&resourceVersion=1&fieldSelector=metadata.name=one`,
      );
      for (const name of ["two", "one"]) server.create("v1/configmaps", configMap(name, inShop));
      assert.deepEqual(summary(await reader.take(1)), ["ADDED shop/one 3"]);
    }));
});

describe("InMemoryApiServer: a streamed list", () => {
  it("is the objects, a bookmark that ends them, and then the events", () =>
    withServer({}, async (server) => {
      for (const name of ["a", "b"]) server.create("v1/configmaps", configMap(name, inShop));
      server.create("v1/pods", pod("p"));
      const reader = await watch(server, `${CONFIG_MAPS}?${INITIAL_EVENTS}`);
      const events = await reader.take(3);
      assert.deepEqual(summary(events), ["ADDED shop/a 2", "ADDED shop/b 3", "BOOKMARK 4"]);
      assert.deepEqual(events[2].object, {
        kind: "ConfigMap",
        apiVersion: "v1",
        metadata: { resourceVersion: "4", annotations: { "k8s.io/initial-events-end": "true" } },
      });
      server.delete("v1/configmaps", "shop/b");
      assert.deepEqual(summary(await reader.take(1)), ["DELETED shop/b 5"]);
    }));

  it("has a bookmark even if no object matches", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", inShop));
      const reader = await watch(server, `${CONFIG_MAPS}?${INITIAL_EVENTS}&labelSelector=none`);
      assert.deepEqual(summary(await reader.take(1)), ["BOOKMARK 2"]);
    }));

  it("has no bookmark if none are allowed", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", inShop));
      const reader = await watch(
        server,
        `${CONFIG_MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`,
      );
      server.create("v1/configmaps", configMap("b", inShop));
      assert.deepEqual(summary(await reader.take(2)), ["ADDED shop/a 2", "ADDED shop/b 3"]);
    }));

  it("is a snapshot, however late it is read", () =>
    withServer({}, async (server) => {
      for (const name of ["a", "b"]) server.create("v1/configmaps", configMap(name, inShop));
      const reader = await watch(server, `${CONFIG_MAPS}?${INITIAL_EVENTS}`);
      server.delete("v1/configmaps", "shop/a");
      assert.deepEqual(summary(await reader.take(4)), [
        "ADDED shop/a 2",
        "ADDED shop/b 3",
        "BOOKMARK 3",
        "DELETED shop/a 4",
      ]);
    }));

  it("at a version from the future waits for it, and ends with an ERROR event", async () => {
    const clock = new FakeClock();
    await withServer({ clock }, async (server) => {
      const reader = await watch(server, `${CONFIG_MAPS}?${INITIAL_EVENTS}&resourceVersion=9`);
      const events = reader.rest();
      await clock.advance(3_000);
      const [event] = await events;
      assert.deepEqual([event.type, event.object.code, event.object.message], [
        "ERROR",
        504,
        "Timeout: Too large resource version: 9, current: 1",
      ]);
      assert.equal(clock.pendingTimers, 0);

      const late = await watch(server, `${CONFIG_MAPS}?${INITIAL_EVENTS}&resourceVersion=2`);
      await clock.advance(1_000);
      server.create("v1/configmaps", configMap("a", inShop));
      assert.deepEqual(summary(await late.take(2)), ["ADDED shop/a 2", "BOOKMARK 2"]);
    });
  });

  it("can be refused, as by servers without the feature", () =>
    withServer({ initialEvents: "refuse" }, async (server) => {
      const { status, body } = await call(server, "GET", `${CONFIG_MAPS}?${INITIAL_EVENTS}`);
      assert.deepEqual([status, body.reason], [422, "Invalid"]);
      assert.match(
        body.message,
        /sendInitialEvents is forbidden for watch unless the WatchList feature gate is en/,
      );
      server.create("v1/configmaps", configMap("a", inShop));
      const plain = await watch(server, `${CONFIG_MAPS}?watch=1`);
      assert.deepEqual(summary(await plain.take(1)), ["ADDED shop/a 2"]);
    }));

  it("can be ignored, as by servers older than the option", () =>
    withServer({ initialEvents: "ignore" }, async (server) => {
      server.create("v1/configmaps", configMap("a", inShop));
      const fromStart = await watch(server, `${CONFIG_MAPS}?${INITIAL_EVENTS}`);
      const fromThere = await watch(server, `${CONFIG_MAPS}?${INITIAL_EVENTS}&resourceVersion=2`);
      server.create("v1/configmaps", configMap("b", inShop));
      assert.deepEqual(summary(await fromStart.take(2)), ["ADDED shop/a 2", "ADDED shop/b 3"]);
      assert.deepEqual(summary(await fromThere.take(1)), ["ADDED shop/b 3"]);
    }));

  it("is refused if the options contradict each other", () =>
    withServer({}, async (server) => {
      const refusals: [query: string, status: number][] = [
        ["watch=1&sendInitialEvents=true", 422],
        ["watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=1", 422],
        ["watch=1&sendInitialEvents=true&resourceVersionMatch=Exact", 422],
        ["sendInitialEvents=true&resourceVersionMatch=NotOlderThan", 422],
        ["watch=1&labelSelector=a+in", 400],
        ["watch=1&timeoutSeconds=soon", 400],
      ];
      for (const [query, status] of refusals) {
        // deno-lint-ignore no-await-in-loop
        assert.deepEqual([query, (await call(server, "GET", `${CONFIG_MAPS}?${query}`)).status], [
          query,
          status,
        ]);
      }
    }));
});

describe("InMemoryApiServer: bookmarks", () => {
  const BOOKMARKED = `${CONFIG_MAPS}?watch=1&resourceVersion=1&allowWatchBookmarks=true`;

  it("come at the interval, with the newest resourceVersion of all resources", async () => {
    const clock = new FakeClock();
    await withServer({ clock, bookmarkIntervalMs: 10_000 }, async (server) => {
      const reader = await watch(server, BOOKMARKED);
      server.create("v1/pods", pod("elsewhere"));
      const events = reader.take(2);
      await clock.advance(10_000);
      server.create("v1/pods", pod("elsewhere-2"));
      await clock.advance(10_000);
      assert.deepEqual(
        await events,
        ["2", "3"].map((resourceVersion) => ({
          type: "BOOKMARK",
          object: { kind: "ConfigMap", apiVersion: "v1", metadata: { resourceVersion } },
        })),
      );
    });
  });

  it("do not come unless they are allowed", async () => {
    const clock = new FakeClock();
    await withServer({ clock, bookmarkIntervalMs: 1_000 }, async (server) => {
      const reader = await watch(server, `${CONFIG_MAPS}?watch=1&resourceVersion=1&timeoutSeconds=60`);
      const events = reader.rest();
      await clock.advance(60_000);
      assert.deepEqual(await events, []);
    });
  });

  it("come once more shortly before the end of the watch", async () => {
    const clock = new FakeClock();
    await withServer({ clock }, async (server) => {
      const events = (await watch(server, `${BOOKMARKED}&timeoutSeconds=10`)).rest();
      server.create("v1/pods", pod("elsewhere"));
      await clock.advance(10_000);
      assert.deepEqual(summary(await events), ["BOOKMARK 2"]);
    });
  });

  it("do not pile up for a watcher that does not read", async () => {
    const clock = new FakeClock();
    await withServer({ clock, bookmarkIntervalMs: 1_000 }, async (server) => {
      const reader = await watch(server, `${BOOKMARKED}&timeoutSeconds=100`);
      await clock.advance(100_000);
      assert.equal((await reader.rest()).length, 1);
    });
  });
});

describe("InMemoryApiServer: the end of a watch", () => {
  it("comes after timeoutSeconds", async () => {
    const clock = new FakeClock();
    await withServer({ clock }, async (server) => {
      const events = (await watch(server, `${CONFIG_MAPS}?watch=1&resourceVersion=1&timeoutSeconds=30`))
        .rest();
      await clock.advance(29_999);
      server.create("v1/configmaps", configMap("a", inShop));
      await clock.advance(1);
      server.create("v1/configmaps", configMap("b", inShop));
      assert.deepEqual(summary(await events), ["ADDED shop/a 2"]);
      assert.equal(server.openWatches, 0);
    });
  });

  it("comes after half an hour to an hour without timeoutSeconds", async () => {
    const clock = new FakeClock();
    await withServer({ clock, random: () => 0.5 }, async (server) => {
      await watch(server, `${CONFIG_MAPS}?watch=1`);
      await clock.advance(45 * 60_000 - 1);
      assert.equal(server.openWatches, 1);
      await clock.advance(1);
      assert.equal(server.openWatches, 0);
    });
  });

  it("leaves no timer and no listener, whatever its cause", async () => {
    const clock = new FakeClock();
    await withServer({ clock }, async (server) => {
      const path = `${CONFIG_MAPS}?watch=1&allowWatchBookmarks=true`;
      const cancelled = await watch(server, path);
      assert.deepEqual([server.openWatches, clock.pendingTimers], [1, 2]);
      await cancelled.cancel();
      assert.deepEqual([server.openWatches, clock.pendingTimers], [0, 0]);

      const stop = new AbortController();
      const aborted = await watch(server, path, { signal: stop.signal });
      const events = aborted.rest();
      stop.abort(new Error("no more"));
      await assert.rejects(events, { message: "no more" });
      assert.deepEqual([server.openWatches, clock.pendingTimers], [0, 0]);

      const signal = new CountingSignal();
      const left = await watch(server, path, { signal: signal.signal });
      assert.ok(signal.listeners > 0);
      await left.cancel();
      assert.deepEqual([server.openWatches, clock.pendingTimers, signal.listeners], [0, 0, 0]);

      await watch(server, path); // never read
      server.closeWatches();
      assert.deepEqual([server.openWatches, clock.pendingTimers], [0, 0]);

      await watch(server, path);
      await watch(server, `${path}&resourceVersion=1`);
      server.close();
      assert.deepEqual([server.openWatches, clock.pendingTimers], [0, 0]);
    });
  });

  it("by the server leaves the sent events readable", () =>
    withServer({}, async (server) => {
      const reader = await watch(server, `${CONFIG_MAPS}?watch=1&resourceVersion=1`);
      server.create("v1/configmaps", configMap("a", inShop));
      server.closeWatches();
      server.create("v1/configmaps", configMap("b", inShop));
      assert.deepEqual(summary(await reader.rest()), ["ADDED shop/a 2"]);
      const next = await watch(server, `${CONFIG_MAPS}?watch=1&resourceVersion=2`);
      assert.deepEqual(summary(await next.take(1)), ["ADDED shop/b 3"]);
    }));

  it("by a reset is an error", () =>
    withServer({}, async (server) => {
      const reader = await watch(server, `${CONFIG_MAPS}?watch=1&resourceVersion=1`);
      const events = reader.rest();
      server.closeWatches({ reset: true });
      await assert.rejects(
        events,
        (error: Error) => (error.cause as { code?: string }).code === "ECONNRESET",
      );
    }));

  it("comes to a watcher that does not read once too many bytes wait", () =>
    withServer({ maxWatchBufferBytes: 1_000 }, async (server) => {
      const slow = await watch(server, `${CONFIG_MAPS}?watch=1&resourceVersion=1`);
      const quick = await watch(server, `${CONFIG_MAPS}?watch=1&resourceVersion=1`);
      const events = quick.take(12);
      for (let i = 0; i < 12; i++) {
        server.create("v1/configmaps", configMap(`c${i}`, inShop));
        // deno-lint-ignore no-await-in-loop
        await new Promise((resolve) => setTimeout(resolve, 0)); // the quick one reads
      }
      assert.equal((await events).length, 12);
      assert.deepEqual([server.openWatches, await slow.rest()], [1, []]);
    }));
});

describe("InMemoryApiServer: the bytes of a watch", () => {
  it("are the same for all watchers, and no watcher can change them for another", () =>
    withServer({}, async (server) => {
      const path = `http://in-memory${CONFIG_MAPS}?watch=1&resourceVersion=1`;
      const readers = [];
      for (let i = 0; i < 3; i++) {
        // deno-lint-ignore no-await-in-loop
        readers.push((await server.fetch(path)).body!.getReader());
      }
      server.create("v1/configmaps", configMap("a", inShop));
      const chunks: string[] = [];
      for (const reader of readers) {
        // deno-lint-ignore no-await-in-loop
        const { value } = await reader.read();
        chunks.push(new TextDecoder().decode(value));
        value!.fill(0);
      }
      assert.match(chunks[0], /^\{"type":"ADDED","object":\{"kind":"ConfigMap",.*\}\}\n$/);
      assert.deepEqual([chunks[1], chunks[2]], [chunks[0], chunks[0]]);
    }));

  it("of waiting events come together", () =>
    withServer({}, async (server) => {
      const reader = await watch(server, `${CONFIG_MAPS}?watch=1&resourceVersion=1`);
      for (let i = 0; i < 100; i++) server.create("v1/configmaps", configMap(`c${i}`, inShop));
      await reader.take(100);
      assert.ok(reader.chunkSizes.length < 10, "workerd reads 4 KiB at a time, the others all at once");
    }));

  it("can be read into the reader's own buffer", () =>
    withServer({}, async (server) => {
      const { body } = await server.fetch(`http://in-memory${CONFIG_MAPS}?watch=1&resourceVersion=1`);
      const reader = body!.getReader({ mode: "byob" });
      const reading = reader.read(new Uint8Array(7));
      server.create("v1/configmaps", configMap("a", inShop));
      const { value } = await reading;
      assert.equal(new TextDecoder().decode(value), '{"type"');
      let text = "";
      server.closeWatches();
      for (let isDone = false; !isDone;) {
        // deno-lint-ignore no-await-in-loop
        const { done, value } = await reader.read(new Uint8Array(64));
        text += new TextDecoder().decode(value);
        isDone = done;
      }
      assert.match(text, /^:"ADDED".*\}\n$/);
    }));

  it("of a large state come in many chunks", () =>
    withServer({}, async (server) => {
      for (let i = 0; i < 300; i++) {
        server.create("v1/configmaps", configMap(`c${i}`, { ...inShop, data: { blob: "x".repeat(1_000) } }));
      }
      const reader = await watch(server, `${CONFIG_MAPS}?${INITIAL_EVENTS}`);
      assert.equal((await reader.take(301)).at(-1).type, "BOOKMARK");
      assert.ok(reader.chunkSizes.length > 4 && Math.max(...reader.chunkSizes) < 70_000);
    }));
});
