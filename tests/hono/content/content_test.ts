import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { ContentFreshness, ContentVersions } from "../../../src/hono/content/content.ts";
import type { EventLog } from "../../../src/hono/content/event_log.ts";
import type { NamedInformer, ServedInformer } from "../../../src/hono/content/served_informer.ts";
import { encodeContinue } from "../../../src/protocol/continue_token.ts";
import type { ListQuery } from "../../../src/protocol/request_url.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { Deque } from "../../../src/util/collections.ts";
import { readApi } from "../read_api.ts";

/** A log of changes: the key of each, or `""` for a bookmark; change `n` is at resourceVersion `n`. */
class FakeLog {
  readonly entries = new Deque<{ type: string; key: string; position: string }>();
  tail = 0;
  rewrites = 0;
  /** The oldest version from which a watch may continue. */
  oldest = 0;

  change(key: string): void {
    const position = String(this.tail + this.entries.length + 1);
    this.entries.push({ type: key === "" ? "BOOKMARK" : "MODIFIED", key, position });
  }

  drop(count: number): void {
    for (let i = 0; i < count; i++) this.entries.shift();
    this.tail += count;
  }

  get window() {
    const resourceVersion = String(this.tail + this.entries.length);
    return { ...this, entries: this.entries, resourceVersion, layout: "" };
  }

  resume(resourceVersion: string): number | undefined {
    return Number(resourceVersion) < this.oldest ? undefined : Number(resourceVersion);
  }
}

function versionsOf(log: FakeLog): ContentVersions {
  return new ContentVersions(log as unknown as EventLog<KubernetesObject>);
}

describe("ContentVersions.versionOf", () => {
  it("is that of the last change in the namespace, or of any", () => {
    const log = new FakeLog();
    const versions = versionsOf(log);
    assert.deepEqual(versions.versionOf("a"), { changes: 0, since: "0", rewrites: 0 });
    for (const key of ["a/x", "b/x", "node", "", "b/y", ""]) log.change(key);
    assert.deepEqual(versions.versionOf("a"), { changes: 1, since: "1", rewrites: 0 });
    assert.deepEqual(versions.versionOf("b"), { changes: 5, since: "5", rewrites: 0 });
    assert.deepEqual(versions.versionOf(""), { changes: 5, since: "5", rewrites: 0 });
    // An object in no namespace is in none whose name begins like its own.
    for (const namespace of ["nod", "node", "c"]) {
      assert.deepEqual(versions.versionOf(namespace), { changes: 0, since: "0", rewrites: 0 });
    }
    log.change("other");
    assert.deepEqual(versions.versionOf(""), { changes: 7, since: "7", rewrites: 0 });
    assert.deepEqual(versions.versionOf("b"), { changes: 5, since: "5", rewrites: 0 });
  });

  it("is the present one of all namespaces once changes were dropped unread, and only those after count", () => {
    const log = new FakeLog();
    const versions = versionsOf(log);
    versions.versionOf("a");
    for (const key of ["a/x", "a/x"]) log.change(key);
    versions.versionOf("a");
    log.drop(2); // read
    assert.deepEqual(versions.versionOf("a"), { changes: 2, since: "2", rewrites: 0 });
    for (const key of ["a/x", "b/x"]) log.change(key);
    log.drop(1); // unread
    const all = { changes: 4, since: "4", rewrites: 0 };
    for (const namespace of ["a", "b", "c", ""]) assert.deepEqual(versions.versionOf(namespace), all);
    log.change("b/x");
    assert.deepEqual(versions.versionOf("b"), { changes: 5, since: "5", rewrites: 0 });
    for (const namespace of ["a", "c"]) assert.deepEqual(versions.versionOf(namespace), all);
  });

  it("is the present one of all namespaces once the content was rewritten, and only changes after count", () => {
    const log = new FakeLog();
    const versions = versionsOf(log);
    assert.equal(versions.versionOf("a").rewrites, 0);
    for (const key of ["a/x", "b/x"]) log.change(key);
    assert.equal(versions.versionOf("a").changes, 1);
    log.rewrites = 1;
    const all = { changes: 2, since: "2", rewrites: 1 };
    for (const namespace of ["a", "b", "c", ""]) assert.deepEqual(versions.versionOf(namespace), all);
    log.change("b/x");
    assert.deepEqual(versions.versionOf("b"), { changes: 3, since: "3", rewrites: 1 });
    for (const namespace of ["a", "c"]) assert.deepEqual(versions.versionOf(namespace), all);
  });

  it("names the present version once no watch can continue from that of the last change", () => {
    const log = new FakeLog();
    const versions = versionsOf(log);
    versions.versionOf("a");
    for (const key of ["a/x", "b/x", "b/y"]) log.change(key);
    log.oldest = 1;
    assert.deepEqual(versions.versionOf("a"), { changes: 1, since: "1", rewrites: 0 });
    log.oldest = 2;
    assert.deepEqual(versions.versionOf("a"), { changes: 1, since: "3", rewrites: 0 });
    log.change("b/x");
    assert.deepEqual(versions.versionOf("a"), { changes: 1, since: "3", rewrites: 0 });
  });

  it("keeps the changes of 4,096 namespaces, all together among them; older ones have the latest of the others", () => {
    const log = new FakeLog();
    const versions = versionsOf(log);
    versions.versionOf("");
    for (let i = 0; i < 4_095; i++) log.change(`n${i}/x`);
    assert.equal(versions.versionOf("n0").changes, 1);
    assert.equal(versions.versionOf("new").changes, 0);
    log.change("n0/x"); // the latest one now
    log.change("n4095/x");
    assert.equal(versions.versionOf("n1").changes, 2); // dropped, and the others' last
    assert.equal(versions.versionOf("n2").changes, 3);
    assert.equal(versions.versionOf("new").changes, 2);
    assert.equal(versions.versionOf("n0").changes, 4_096);
    assert.equal(versions.versionOf("").changes, 4_097);
    log.change("n4096/x");
    assert.equal(versions.versionOf("n1").changes, 3);
    assert.equal(versions.versionOf("n0").changes, 4_096);
  });
});

/** A source at a resourceVersion. */
class FakeSource {
  readonly observers = new Set<() => void>();
  readonly informer: ServedInformer;
  observed = 0;
  resourceVersion: string;
  synced = true;

  constructor(resourceVersion: string) {
    this.resourceVersion = resourceVersion;
    this.informer = {
      indexer: {
        listKeys: () => [],
        getByKey: () => undefined,
        lastStoreSyncResourceVersion: () => this.resourceVersion,
      },
      hasSynced: () => this.synced,
      observe: (observer) => {
        const moved = observer as () => void;
        this.observed++;
        this.observers.add(moved);
        return () => this.observers.delete(moved);
      },
      status: () => ({ phase: "watching" }),
    };
  }

  move(resourceVersion: string): void {
    this.resourceVersion = resourceVersion;
    for (const moved of this.observers) moved();
  }
}

/** The content of one source, or of several, whose versions are joined by `+`. */
class FakeContent {
  readonly clock = new FakeClock();
  readonly options = {
    clock: this.clock,
    logger: silentLogger,
    freshnessTimeoutMs: 1_000,
    freshness: "consistent",
  } as const;
  readonly asked: string[] = [];
  sources: NamedInformer[] = [];
  rewrites = 0;
  resourceVersion = "7";
  readonly freshness: ContentFreshness;

  constructor(isMerged: boolean, options: { readonly freshness?: "as-is" } = {}) {
    const { informer } = new FakeSource("7");
    const served: ServedInformer = isMerged
      ? Object.defineProperties({ ...informer, partsOf: (version: string) => version.split("+") }, {
        sources: { get: () => this.sources },
      })
      : informer;
    const log = {
      reaches: (version: string) => {
        this.asked.push(version);
        return Promise.resolve(Number(version) <= Number(this.resourceVersion));
      },
    };
    Object.defineProperties(log, {
      resourceVersion: { get: () => this.resourceVersion },
      window: { get: () => ({ rewrites: this.rewrites, layout: "" }) },
    });
    this.freshness = new ContentFreshness(log as unknown as EventLog<KubernetesObject>, served, {
      ...this.options,
      ...options,
    });
  }

  async catchUp(options: ListQuery["options"], timeoutMs = 0): Promise<unknown> {
    const resource = { group: "", version: "v1", resource: "pods", kind: "Pod", namespaced: true };
    const answer = this.freshness.catchUp({ options } as ListQuery, {
      resource: resource as never,
      name: "",
      isPartial: false,
      refusesStale: false,
      wait: { timeoutMs },
    });
    await this.clock.advance(timeoutMs);
    return await answer;
  }
}

const sourceNamed = (name: string, resourceVersion: string) => {
  const source = new FakeSource(resourceVersion);
  return { source, named: { name, informer: source.informer } };
};

const tooLarge = (asked: string, current: string) => ({
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Failure",
  code: 504,
  reason: "Timeout",
  message: `Timeout: Too large resource version: ${asked}, current: ${current}`,
  details: {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  },
});

describe("ContentFreshness.catchUp", () => {
  it("waits for the resourceVersion of a read, and refuses one that does not come", async () => {
    const content = new FakeContent(false);
    assert.deepEqual(await content.catchUp({ resourceVersion: "7" }), []);
    assert.deepEqual(await content.catchUp({ resourceVersion: "0" }), []);
    assert.deepEqual(content.asked, ["7"]);
    assert.deepEqual(await content.catchUp({ resourceVersion: "8" }), tooLarge("8", "7"));
  });

  it("waits for the resourceVersion of a token only if the content has not reached it", async () => {
    const content = new FakeContent(false);
    const token = (resourceVersion: string, epoch?: string) => ({
      continue: encodeContinue({
        resourceVersion,
        start: "a",
        list: "l",
        ...(epoch !== undefined && { epoch }),
      }),
    });
    for (const version of ["6", "7"]) assert.deepEqual(await content.catchUp(token(version)), []);
    assert.deepEqual(content.asked, []);
    assert.deepEqual(await content.catchUp(token("8")), tooLarge("8", "7"));
    assert.deepEqual(await content.catchUp(token("8", "copy.0")), tooLarge("8", "7"));
    content.rewrites = 2;
    // The content does not come there any more: the reader of the token says so.
    assert.deepEqual(await content.catchUp(token("8", "copy.0")), []);
    assert.deepEqual(await content.catchUp(token("8", "copy.2")), tooLarge("8", "7"));
    assert.deepEqual(content.asked, ["8", "8", "8", "8"]);
    assert.deepEqual(await content.catchUp({ continue: "no token" }), []);
  });

  it("refuses a resourceVersion of another layout, and shows no more than its beginning", async () => {
    const content = new FakeContent(false);
    const of = async (
      version: string,
    ) => (await content.catchUp({ resourceVersion: version }) as { code: number; message: string });
    const merged = `1${"0".repeat(40)}`;
    const { code, message } = await of(merged);
    assert.equal(code, 410);
    assert.match(message, new RegExp(`^The resourceVersion ${merged} is none of this resource: its sources`));
    const long = `1${"0".repeat(120)}`;
    assert.match(
      (await of(long)).message,
      new RegExp(`^The resourceVersion ${long.slice(0, 100)}\\.\\.\\. is none`),
    );
    const longest = `1${"0".repeat(99)}`;
    assert.match((await of(longest)).message, new RegExp(`^The resourceVersion ${longest} is none`));
  });

  it("waits for each source to reach its part", async () => {
    const content = new FakeContent(true);
    const [a, b] = [sourceNamed("a", "5"), sourceNamed("b", "9")];
    content.sources = [a.named, b.named];
    assert.deepEqual(await content.catchUp({ resourceVersion: "5+9" }), []);
    assert.deepEqual(await content.catchUp({ resourceVersion: "0+9" }), []);
    assert.deepEqual(await content.catchUp({ resourceVersion: "6+9" }, 50), tooLarge("6+9", "7"));
    const reached = content.freshness.catchUp({ options: { resourceVersion: "6+10" } } as ListQuery, {
      resource: {} as never,
      name: "",
      isPartial: false,
      refusesStale: false,
      wait: { timeoutMs: 1_000 },
    });
    a.source.move("6");
    b.source.move("10");
    await content.clock.advance(0);
    assert.deepEqual(await reached, []);
  });
});

describe("ContentFreshness", () => {
  it("follows the sources that there are, each once, and no source that has left", async () => {
    const content = new FakeContent(true);
    const [a, b, c] = ["a", "b", "c"].map((name) => sourceNamed(name, "5"));
    content.sources = [a.named, b.named];
    await content.catchUp({});
    assert.deepEqual([a, b, c].map(({ source }) => source.observers.size), [1, 1, 0]);
    content.sources = [c.named, b.named];
    await content.catchUp({});
    await content.catchUp({});
    assert.deepEqual([a, b, c].map(({ source }) => source.observers.size), [0, 1, 1]);
    assert.deepEqual([a, b, c].map(({ source }) => source.observed), [1, 1, 1]);
    content.sources = [b.named];
    await content.catchUp({});
    assert.deepEqual([a, b, c].map(({ source }) => source.observers.size), [0, 1, 0]);
  });

  it("follows nothing once it is closed, and ends what waits; the sources stay", async () => {
    const content = new FakeContent(true);
    const [a, b] = [sourceNamed("a", "5"), sourceNamed("b", "5")];
    content.sources = [a.named];
    const waiting = content.catchUp({ resourceVersion: "6" }, 0);
    await waiting;
    content.freshness.close();
    assert.equal(a.source.observers.size, 0);
    content.sources = [a.named, b.named];
    assert.deepEqual(await content.catchUp({ resourceVersion: "5" }), []);
    assert.deepEqual([a.source.observed, b.source.observed], [1, 0]);
  });

  it("names the sources without content that a read may need", () => {
    const content = new FakeContent(true);
    const [a, b] = [sourceNamed("a", "5"), sourceNamed("b", "")];
    content.sources = [a.named, b.named];
    b.source.synced = false;
    assert.deepEqual(content.freshness.missing(""), ["b"]);
    b.source.synced = true;
    assert.deepEqual(content.freshness.missing(""), []);
  });
});

describe("Content", () => {
  it("serves what the API server sent, letter for letter, also of objects that a handler has read whole", async () => {
    const metadata = '"metadata":{"name":"web-1","namespace":"shop","resourceVersion":"5"}';
    const pod = `{${metadata},"spec":{"n":1.0,"text":"${"x".repeat(500)}"}}`;
    const list = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[${pod}]}`;
    const cluster = newCluster({
      server: "http://in-memory",
      fetch: (input) => {
        if (!String(input).includes("watch=")) return Promise.resolve(new Response(list));
        return Promise.resolve(new Response(new ReadableStream()));
      },
    });
    const source = cluster.resource("v1/pods", { keep: "everything" });
    const informer = new SharedIndexInformer<KubernetesObject>(source, {
      reflector: { useWatchList: false },
    });
    const api = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });
    informer.addEventHandler({ onAdd: (object) => void JSON.stringify(object) });
    const running = informer.start();
    await informer.synced();
    const answer = await api.request("/api/v1/namespaces/shop/pods/web-1?resourceVersion=0");
    assert.equal(await answer.text(), `{"kind":"Pod","apiVersion":"v1",${pod.slice(1)}\n`);
    await running.stop();
  });
});
