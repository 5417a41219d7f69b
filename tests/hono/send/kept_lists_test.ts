import assert from "node:assert/strict";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { allowNamespaces, bearerTokens, type ReadApiOptions } from "@listwatch/cache/hono";
import { PrometheusMetrics } from "@listwatch/cache/metrics";
import type { Holding } from "../../../src/store/holding.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import type { Json } from "../reading.ts";
import { describe, it } from "../storages.ts";
import { readApi } from "../read_api.ts";
import { readApiOf } from "../../../src/hono/read_api.ts";
import { newReadApiState } from "../../../src/hono/read_api_state.ts";

/** Pods of about a kilobyte. */
function pods(count: number, namespaces = ["shop", "blog"]): TestObject[] {
  return Array.from(
    { length: count },
    (_, i) =>
      object(`${namespaces[i % namespaces.length]}/p-${String(i).padStart(5, "0")}`, i + 1, {
        labels: { app: `app-${i % 3}` },
        spec: { nodeName: `n-${i % 7}`, text: `${i} é `.repeat(160) },
      }),
  );
}

function apiOf(objects: readonly TestObject[], options: Partial<ReadApiOptions> = {}) {
  const clock = new FakeClock();
  const informer = FakeInformer.with(objects, 100_000);
  const reads = { count: 0 };
  const { holding } = informer.indexer as unknown as { holding: Holding<TestObject> };
  const [json, peek] = [holding.json.bind(holding), holding.peek.bind(holding)];
  // What is read of an object to write it.
  Object.assign(holding, {
    json: (held: TestObject) => (reads.count++, json(held)),
    peek: (held: TestObject) => (reads.count++, peek(held)),
  });
  const resources = [{ informer, resource: "v1/pods" }];
  return { clock, informer, reads, api: readApi({ resources, allowAnonymous: true, clock, ...options }) };
}

type Api = ReturnType<typeof readApi>;

async function bytesOf(response: Response | Promise<Response>): Promise<Uint8Array<ArrayBuffer>> {
  const awaited = await response;
  assert.equal(awaited.status, 200);
  return new Uint8Array(await awaited.arrayBuffer());
}

async function gunzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const GZIP = { headers: { "Accept-Encoding": "gzip" } };
const PATH = "/api/v1/pods";

const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

describe("readApi, the bodies of lists that change while readers read nothing of them", () => {
  it("have few bytes, and each reader has its own list to the end", async () => {
    const maxReaderBytes = 2 * 1024 * 1024;
    const clock = new FakeClock();
    const informer = FakeInformer.with(pods(1_000), 100_000);
    const resources = [{ informer, resource: "v1/pods" }];
    const state = newReadApiState({ resources, allowAnonymous: true, clock, maxReaderBytes });
    const api = readApiOf(state);
    const readers: {
      version: number;
      reader: ReadableStreamDefaultReader<Uint8Array>;
      decoder: TextDecoder;
      text: string;
    }[] = [];
    for (let version = 100_000; version < 100_016; version++) {
      const response = await api.request(PATH);
      const reader = response.body!.getReader();
      const decoder = new TextDecoder();
      let text = "";
      // Some read a part, some nothing.
      for (let i = 0; i < version % 4; i++) {
        text += decoder.decode((await reader.read()).value, { stream: true });
      }
      readers.push({ version, reader, decoder, text });
      informer.put(object(`shop/new-${version}`, version + 1));
      state.bodies.dropUnused();
      const most = maxReaderBytes / 16 + 512 * 1024;
      assert.ok(state.bodies.bytes <= most, `${state.bodies.bytes} bytes`);
    }
    await Promise.all(readers.map(async ({ version, reader, decoder, text: beginning }) => {
      let text = beginning;
      for (let part; !(part = await reader.read()).done;) {
        text += decoder.decode(part.value, { stream: true });
      }
      const { metadata, items } = JSON.parse(text);
      assert.equal(metadata.resourceVersion, String(version));
      assert.equal(items.length, 1_000 + version - 100_000);
    }));
    state.bodies.dropUnused();
    assert.equal(state.bodies.bytes, 0);
    assert.equal(state.bodies.dropSome(), false, "nothing is left of them");
    assert.equal(state.readers.count, 0);
  });
});

describe("readApi, the kept body of a list", () => {
  it("is what a cache that keeps none answers, byte by byte, in every form", async () => {
    const objects = pods(300);
    // A token of a page has the name of its cache.
    const random = () => 0.5;
    const { api } = apiOf(objects, { random });
    const forms = [
      "",
      "?pretty=1",
      "?limit=7",
      "?labelSelector=app%3Dapp-1",
      "?fieldSelector=spec.nodeName%3Dn-2",
      "?fieldSelector=metadata.name%3Dp-00003",
      "?resourceVersion=0",
    ];
    for (const path of [PATH, "/api/v1/namespaces/blog/pods"]) {
      for (const form of forms) {
        for (const accept of ["*/*", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"]) {
          const headers = { Accept: accept };
          const expected = await bytesOf(apiOf(objects, { random }).api.request(path + form, { headers }));
          for (let i = 0; i < 3; i++) {
            const actual = await bytesOf(api.request(path + form, { headers }));
            assert.equal(textOf(actual), textOf(expected), `${path}${form}`);
          }
        }
      }
    }
  });

  it("is made once for any number of requests, also for those that come while it is made", async () => {
    const { api, informer, reads } = apiOf(pods(300));
    const first = textOf(await bytesOf(api.request(PATH)));
    const once = reads.count;
    assert.ok(once >= 300);
    const [a, b] = await Promise.all([bytesOf(api.request(PATH)), bytesOf(api.request(PATH))]);
    assert.equal(textOf(a), first);
    assert.equal(textOf(b), first);
    assert.equal(reads.count, once);
    informer.put(object("shop/p-00000", 100_001));
    const readers = await Promise.all([api.request(PATH), api.request(PATH), api.request(PATH)]);
    const bodies = await Promise.all(readers.map((response) => bytesOf(response)));
    assert.ok(bodies.every((body) => textOf(body) === textOf(bodies[0])));
    assert.ok(JSON.parse(textOf(bodies[0])).metadata.resourceVersion === "100001");
  });

  it("is not served after any change of the content or of the resourceVersion", async () => {
    const { api, informer } = apiOf(pods(10));
    const list = async (): Promise<Json> => JSON.parse(textOf(await bytesOf(api.request(PATH))));
    const changes: (() => void)[] = [
      () => informer.put(object("shop/new", 100_001)),
      () => informer.put(object("shop/new", 100_002, { spec: 1 })),
      () => informer.put(object("shop/new", 100_002, { spec: "under the same resourceVersion" })),
      () => informer.put(object("shop/late", 5)),
      () => informer.remove("shop/new", 100_003),
      () => informer.bookmark(100_004),
      () => informer.relist([object("shop/other", 100_005)], 100_006),
      () => informer.relist([object("shop/older", 50)], 60),
    ];
    let before = await list();
    for (const change of changes) {
      change();
      const after = await list();
      assert.notDeepEqual(after, before, String(change));
      assert.deepEqual(await list(), after);
      before = after;
    }
    assert.equal(before.items[0].metadata.name, "older");
  });

  it("is not kept, and has another tag, if the content changes while it is selected", async () => {
    const objects = Array.from(
      { length: 14_000 },
      (_, i) => object(`shop/p-${String(i).padStart(5, "0")}`, i + 1, { labels: { app: "web" } }),
    );
    const { api, informer } = apiOf(objects);
    const path = `${PATH}?labelSelector=app%3Dweb&limit=20000`;
    await (await api.request(`${PATH}?limit=1`)).text();
    const first = api.request(path);
    // The list looks at most of the objects, and gives others a turn, in which one leaves the selection.
    for (let i = 0; i < 100; i++) await Promise.resolve();
    informer.put(object("shop/p-13999", 100_001));
    const [before, after] = [await first, await api.request(path)];
    const count = async (response: Response) => (await response.text()).match(/"name":/g)?.length;
    assert.deepEqual([await count(before), await count(after)], [14_000, 13_999]);
    assert.notEqual(before.headers.get("ETag"), after.headers.get("ETag"));
  });

  it("of a newer content is neither replaced by an older one that took longer, nor has it its tag", async () => {
    const objects = Array.from(
      { length: 14_000 },
      (_, i) => object(`shop/p-${String(i).padStart(5, "0")}`, i + 1, { labels: { app: "web" } }),
    );
    const { api, informer, reads } = apiOf(objects);
    const path = `${PATH}?labelSelector=app%3Dweb&limit=20000`;
    await (await api.request(`${PATH}?limit=1`)).text();
    const slow = api.request(path);
    for (let i = 0; i < 100; i++) await Promise.resolve();
    informer.relist(objects.slice(0, 10), 100_001);
    const answers = [await api.request(path), await slow];
    const { count } = reads;
    answers.push(await api.request(path));
    assert.equal(reads.count, count, "it is kept");
    const texts = await Promise.all(answers.map((answer) => answer.text()));
    assert.deepEqual(texts.map((text) => text.match(/"name":/g)?.length), [10, 14_000, 10]);
    const [quick, older, kept] = answers.map(({ headers }) => headers.get("ETag"));
    assert.notEqual(older, quick);
    assert.equal(kept, quick);
  });

  it("is not made again while only its resourceVersion moves: its items have the same bytes, plain and compressed", async () => {
    const { api, informer, reads } = apiOf(pods(300));
    const forms = ["", "?pretty=1", "?limit=7", "?labelSelector=app%3Dapp-1", "?resourceVersion=0"];
    const read = async (form: string, options = {}) => await bytesOf(api.request(PATH + form, options));
    const made = await Promise.all(forms.map(async (form) => textOf(await read(form))));
    await read("", GZIP);
    let count = 0;
    for (const version of [100_002, 1_000_000]) {
      count = reads.count;
      informer.bookmark(version);
      for (const [i, form] of forms.entries()) {
        const text = textOf(await read(form));
        const list = JSON.parse(text);
        assert.equal(list.metadata.resourceVersion, String(version));
        assert.equal(text.slice(text.indexOf('"items"')), made[i].slice(made[i].indexOf('"items"')));
        if (form === "?limit=7") {
          const next = await api.request(
            `${PATH}?limit=7&continue=${encodeURIComponent(list.metadata.continue)}`,
          );
          assert.equal((await next.json()).items.length, 7);
        }
      }
      const compressed = await read("", GZIP);
      assert.ok(textOf(await gunzip(compressed)) === textOf(await read("")));
    }
    assert.equal(reads.count, count, "the second pages are kept, too");
  });

  it("of a namespace is not made again while others change", async () => {
    const { api, informer, reads } = apiOf(pods(300));
    const path = "/api/v1/namespaces/shop/pods";
    const first = await (await api.request(path)).json();
    informer.put(object("blog/new", 100_001));
    informer.remove("blog/p-00001", 100_002);
    const { count } = reads;
    const second = await (await api.request(path)).json();
    assert.equal(reads.count, count);
    assert.equal(second.metadata.resourceVersion, "100002");
    assert.deepEqual(second.items, first.items);
    informer.put(object("shop/new", 100_003));
    assert.equal((await (await api.request(path)).json()).items.length, first.items.length + 1);
  });

  it("in YAML, which has its version at the end, is made again when its version moves", async () => {
    const { api, informer } = apiOf(pods(3));
    const list = async () =>
      textOf(await bytesOf(api.request(PATH, { headers: { Accept: "application/yaml" } })));
    const first = await list();
    informer.bookmark(100_002);
    assert.equal(await list(), first.replace('"100000"', '"100002"'));
  });

  it("is never served to a reader who may not list, nor the page of one user to another", async () => {
    const tokens = ["jane", "john"].map((name) => ({ token: `${name}-s3cret-s3cret`, user: { name } }));
    const { api } = apiOf(pods(40), {
      allowAnonymous: undefined,
      authenticate: bearerTokens(tokens),
      authorize: (request, c) => request.user?.name === "jane" || allowNamespaces(["shop"])(request, c),
    });
    const as = (name: string, path: string) =>
      api.request(path, { headers: { Authorization: `Bearer ${name}-s3cret-s3cret` } });
    assert.equal((await as("jane", PATH)).status, 200);
    assert.equal((await as("john", PATH)).status, 403);
    assert.equal((await api.request(PATH)).status, 401);
    const shop = "/api/v1/namespaces/shop/pods";
    const [jane, john] = await Promise.all(
      ["jane", "john"].map(async (name) => JSON.parse(textOf(await bytesOf(as(name, `${shop}?limit=5`))))),
    );
    assert.notEqual(jane.metadata.continue, john.metadata.continue);
    const next = `${shop}?limit=5&continue=${encodeURIComponent(jane.metadata.continue)}`;
    assert.equal((await as("jane", next)).status, 200);
    assert.equal((await as("john", next)).status, 400);
  });

  it("is dropped when it was not requested for 10 s, without a timer", async () => {
    const { api, clock, reads } = apiOf(pods(300), { maxReaderBytes: 1_200_000 });
    await bytesOf(api.request(PATH));
    await clock.advance(9_999);
    const once = reads.count;
    await bytesOf(api.request(PATH));
    assert.equal(reads.count, once);
    await clock.advance(10_000);
    await bytesOf(api.request(PATH));
    assert.equal(reads.count, 2 * once);
    assert.equal(clock.pendingTimers, 0);
  });

  it("is kept while it is requested every few seconds, and longer than those that are not", async () => {
    const clock = new FakeClock();
    const resources = [{ informer: FakeInformer.with(pods(30), 100_000), resource: "v1/pods" }];
    const state = newReadApiState({ resources, allowAnonymous: true, clock });
    const api = readApiOf(state);
    const list = (app: number) => bytesOf(api.request(`${PATH}?labelSelector=app%3Dapp-${app}`));
    await list(0);
    const [first] = state.bodies.kept;
    for (let i = 0; i < 4; i++) {
      await clock.advance(6_000);
      await list(0);
    }
    assert.deepEqual([...state.bodies.kept], [first]);
    await list(1);
    await list(0);
    assert.ok(state.bodies.dropSome());
    assert.deepEqual([...state.bodies.kept], [first]);
  });

  it("may be larger than the limit: then each reader gets one of its own, with the same bytes", async () => {
    const objects = pods(400);
    const whole = textOf(await bytesOf(apiOf(objects).api.request(PATH)));
    for (const maxReaderBytes of [70_000, 200_000, whole.length - 1]) {
      const { api } = apiOf(objects, { maxReaderBytes });
      const bodies = await Promise.all([1, 2, 3].map(() => bytesOf(api.request(PATH))));
      for (const body of bodies) assert.ok(textOf(body) === whole);
      const compressed = await Promise.all([1, 2].map(() => api.request(PATH, GZIP)));
      for (const response of compressed) {
        // Compressing the list takes bytes, too.
        const isGzip = response.headers.get("Content-Encoding") === "gzip";
        assert.ok(!isGzip || maxReaderBytes > 320_000);
        const body = await bytesOf(response);
        assert.ok(textOf(isGzip ? await gunzip(body) : body) === whole);
      }
    }
  });

  it("gives back the bytes that it has and no more, whenever they are wanted for others", async () => {
    const whole = textOf(await bytesOf(apiOf(pods(400)).api.request(PATH)));
    for (const maxReaderBytes of [70_000, 140_000, 300_000, whole.length - 1, whole.length * 3]) {
      for (let at = 0; at < 5; at++) {
        const resources = [{ informer: FakeInformer.with(pods(400), 100_000), resource: "v1/pods" }];
        const state = newReadApiState({ resources, allowAnonymous: true, maxReaderBytes });
        const api = readApiOf(state);
        const reader = (await api.request(PATH)).body!.getReader();
        const decoder = new TextDecoder();
        let text = "";
        for (let i = 0;; i++) {
          if (i === at) { while (state.bodies.dropSome()); }
          assert.ok(state.bodies.bytes >= 0, `${state.bodies.bytes}`);
          const { value, done } = await reader.read();
          if (done) break;
          text += decoder.decode(value, { stream: true });
        }
        assert.ok(text === whole);
        while (state.bodies.dropSome());
        assert.equal(state.bodies.bytes, 0);
      }
    }
  });

  it("drops no order of a screen, which takes longer to make, where it fills what there is", async () => {
    const list = await bytesOf(apiOf(pods(4_000)).api.request(PATH));
    const resources = [{ informer: FakeInformer.with(pods(4_000), 100_000), resource: "v1/pods" }];
    const maxReaderBytes = list.byteLength + 800_000;
    const state = newReadApiState({ resources, allowAnonymous: true, maxReaderBytes });
    const api = readApiOf(state);
    await bytesOf(api.request(`${PATH}?sortBy=spec.nodeName&limit=1`));
    await bytesOf(api.request(`${PATH}?sortBy=spec.nodeName&limit=1`));
    assert.equal(state.followers.kept.size, 1);
    assert.deepEqual(await bytesOf(api.request(PATH)), list);
    assert.equal(state.followers.kept.size, 1);
  });

  it("is read to its end by readers that began before it was dropped", async () => {
    const { api, informer } = apiOf(pods(400));
    const expected = textOf(await bytesOf(api.request(PATH)));
    const response = await api.request(PATH);
    const reader = response.body!.getReader();
    const decoder = new TextDecoder();
    let text = decoder.decode((await reader.read()).value!, { stream: true });
    informer.put(object("shop/p-00001", 100_001));
    await bytesOf(api.request(PATH));
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      text += decoder.decode(read.value, { stream: true });
    }
    assert.ok(text === expected);
  });

  it("is not counted any longer once it was dropped and its readers have ended or left", async () => {
    const metrics = new PrometheusMetrics();
    const { api, informer } = apiOf(pods(400), { metrics, maxReaderBytes: 1_500_000 });
    const bytes = async () =>
      Number(/^read_api_list_body_bytes (.*)$/m.exec(await (await api.request("/metrics")).text())?.[1]);
    for (let i = 0; i < 20; i++) {
      const options = i % 2 === 0 ? GZIP : {};
      await bytesOf(api.request(`${PATH}?labelSelector=app%3Dapp-1&limit=5`, options));
      const [whole, left, unread] = await Promise.all([
        api.request(PATH, options),
        api.request(`${PATH}?labelSelector=app%3Dapp-${i % 3}`, options),
        api.request(PATH, options),
      ]);
      const reader = left.body!.getReader();
      await reader.read();
      informer.put(object(`shop/p-0000${i % 9}`, 100_001 + i));
      await bytesOf(whole);
      assert.ok(await bytes() <= 1_500_000);
      await reader.cancel();
      await unread.body?.cancel();
    }
    await (await api.request("/api")).text();
    assert.equal(await bytes(), 0);
  });

  it("frees its reader's place when the reader leaves or stalls", async () => {
    const { api, clock } = apiOf(pods(400), { maxRequests: 1 });
    const first = (await api.request(PATH)).body!.getReader();
    await first.read();
    assert.equal((await api.request(PATH)).status, 429);
    await first.cancel();
    assert.equal(clock.pendingTimers, 0, "of a reader that has left, no timer stays");
    const second = (await api.request(PATH, GZIP)).body!.getReader();
    await clock.advance(30_000);
    await assert.rejects(second.read(), /has read nothing of the list for 30000 ms/);
    assert.equal((await bytesOf(api.request(PATH))).byteLength > 400_000, true);
    assert.equal(clock.pendingTimers, 0);
  });
});

describe("readApi, gzip", () => {
  it("compresses what has 128 KiB or more, for readers that prefer it", async () => {
    const { api } = apiOf([...pods(300), object("shop/large", 99_999, { data: "x".repeat(200_000) })]);
    const plain = textOf(await bytesOf(api.request(PATH)));
    const accepts: readonly (readonly [string, boolean])[] = [
      ["gzip", true],
      ["gzip, deflate, br", true],
      ["deflate, GZIP;q=0.5", true],
      ["x-gzip", true],
      ["*", true],
      ["identity;q=0.5, gzip;q=0.5", true],
      ["gzip;q=0", false],
      ["gzip;q=0, *", false],
      ["gzip;q=0.5, identity", false],
      ["gzip;q=nonsense", false],
      ["br", false],
      ["", false],
    ];
    for (const [accept, isCompressed] of accepts) {
      for (let i = 0; i < 2; i++) {
        const response = await api.request(PATH, { headers: { "Accept-Encoding": accept } });
        assert.equal(response.headers.get("Content-Encoding"), isCompressed ? "gzip" : null, accept);
        assert.equal(response.headers.get("Vary"), "Accept, Accept-Encoding");
        const bytes = await bytesOf(response);
        assert.equal(textOf(isCompressed ? await gunzip(bytes) : bytes), plain);
        assert.ok(!isCompressed || bytes.byteLength < plain.length / 4);
      }
    }
    const path = "/api/v1/namespaces/shop/pods/large";
    const large = await api.request(path, GZIP);
    assert.equal(large.headers.get("Content-Encoding"), "gzip");
    assert.equal(textOf(await gunzip(await bytesOf(large))), textOf(await bytesOf(api.request(path))));
  });

  it("compresses what is that long by several chunks, none of which is", async () => {
    const { api } = apiOf(pods(120));
    const plain = await bytesOf(api.request(PATH));
    assert.ok(plain.byteLength > 128 * 1024 && plain.byteLength < 190 * 1024, String(plain.byteLength));
    const response = await api.request(PATH, GZIP);
    assert.equal(response.headers.get("Content-Encoding"), "gzip");
    assert.equal(textOf(await gunzip(await bytesOf(response))), textOf(plain));
  });

  it("does not compress smaller lists, smaller objects, errors and watches", async () => {
    const { api } = apiOf(pods(50));
    const small = ["", "?limit=5", "/absent", "?watch=1&timeoutSeconds=1", "?resourceVersion=x"];
    for (const form of small) {
      const path = form === "/absent" ? "/api/v1/namespaces/shop/pods/absent" : PATH + form;
      const response = await api.request(path, GZIP);
      assert.equal(response.headers.get("Content-Encoding"), null, path);
      await response.body?.cancel();
    }
  });

  it("does not compress a list that is sent in pieces and has less than 128 KiB", async () => {
    const { api } = apiOf(pods(80));
    const response = await api.request(PATH, GZIP);
    assert.equal(response.headers.get("Content-Encoding"), null);
    const { byteLength } = await bytesOf(response);
    assert.ok(byteLength > 64 * 1024 && byteLength < 128 * 1024, String(byteLength));
  });

  it("compresses Tables, which are not kept", async () => {
    const { api } = apiOf(pods(1_000));
    const headers = {
      "Accept": "application/json;as=Table;v=v1;g=meta.k8s.io",
      "Accept-Encoding": "gzip",
    };
    const response = await api.request(`${PATH}?includeObject=Object`, { headers });
    assert.equal(response.headers.get("Content-Encoding"), "gzip");
    assert.equal(JSON.parse(textOf(await gunzip(await bytesOf(response)))).rows.length, 1_000);
  });
});

describe("readApi, ETag", () => {
  const ask = async (api: Api, path: string, tag?: string | null, more: Record<string, string> = {}) =>
    await api.request(path, {
      headers: { ...more, ...(typeof tag === "string" && { "If-None-Match": tag }) },
    });

  it("is another one where a later list brings what was not there at the version that the content had", async () => {
    const { api, informer } = apiOf([object("shop/a", 99_000)]);
    const epochOf = async () => (await ask(api, PATH)).headers.get("ETag")!.split("-")[0];
    const before = await epochOf();
    informer.relist([object("shop/a", 99_000), object("shop/b", 100_001)], 100_002);
    assert.equal(await epochOf(), before, "it came later");
    informer.relist([object("shop/a", 99_000), object("shop/b", 100_002)], 100_003);
    assert.notEqual(await epochOf(), before, "a restored server has had another object then");
  });

  it("of a list: 304 without looking at an object until the content changes, or is listed again", async () => {
    const { api, informer, reads } = apiOf(pods(20));
    const first = await ask(api, PATH);
    const tag = first.headers.get("ETag")!;
    assert.match(tag, /^W\/"[\x21\x23-\x7e]+"$/);
    assert.equal(first.headers.get("Cache-Control"), "no-cache, private");
    const before = reads.count;
    for (const given of [tag, tag.slice(2), `"other", ${tag}`, "*"]) {
      const response = await ask(api, PATH, given);
      assert.equal(response.status, 304, given);
      assert.equal(response.headers.get("ETag"), tag);
      assert.equal(response.headers.get("Vary"), "Accept, Accept-Encoding");
      assert.equal(response.headers.get("Content-Type"), null);
      assert.equal(await response.text(), "");
    }
    assert.equal(reads.count, before);
    for (const given of ['"other"', tag.slice(0, -2), ""]) {
      assert.equal((await ask(api, PATH, given)).status, 200, given);
    }
    const changes = [
      () => informer.put(object("shop/late", 5)),
      // A watch from before it is too old.
      () => informer.relist([...pods(20), object("shop/late", 5)], 100_005),
      () => informer.put(object("shop/late", 5, { spec: "under the same resourceVersion" })),
      () => informer.relist([], 60),
    ];
    informer.bookmark(100_004);
    assert.equal((await ask(api, PATH, tag)).status, 304);
    const moved = await ask(api, PATH);
    assert.equal(moved.headers.get("ETag"), tag);
    assert.equal((await moved.json()).metadata.resourceVersion, "100004");
    let last = tag;
    for (const change of changes) {
      change();
      const response = await ask(api, PATH, last);
      assert.equal(response.status, 200);
      assert.notEqual(response.headers.get("ETag"), last);
      last = response.headers.get("ETag")!;
      assert.equal((await ask(api, PATH, last)).status, 304);
    }
  });

  it("of a namespace's list: 304 until one of its objects changes, while a watch may start from the list", async () => {
    const { api, informer } = apiOf(pods(20), { eventWindow: 4 });
    const path = "/api/v1/namespaces/shop/pods";
    let tag = (await ask(api, path)).headers.get("ETag")!;
    const status = async () => (await ask(api, path, tag)).status;
    const mayWatch = async (version: string) => {
      const response = await api.request(`${path}?watch=1&resourceVersion=${version}&timeoutSeconds=1`);
      const reader = response.body!.getReader();
      const event = reader.read();
      informer.bookmark(Number(informer.indexer.lastStoreSyncResourceVersion()) + 1);
      informer.put(object("shop/seen", Number(informer.indexer.lastStoreSyncResourceVersion()) + 1));
      const { value } = await event;
      await reader.cancel();
      return !textOf(value!).startsWith('{"type":"ERROR"');
    };
    for (let i = 1; i <= 4; i++) {
      informer.put(object("blog/new", 100_000 + i));
      assert.equal(await status(), 304, String(i));
    }
    informer.put(object("blog/new", 100_005));
    assert.equal(await status(), 200, "its version has left the window");
    const again = await ask(api, path);
    tag = again.headers.get("ETag")!;
    assert.equal(await status(), 304);
    assert.ok(await mayWatch((await again.json()).metadata.resourceVersion));
    assert.equal(await status(), 200, "a pod of it was changed");
  });

  it("of an empty list: 304 until there is an object", async () => {
    for (const path of [PATH, "/api/v1/namespaces/shop/pods"]) {
      const { api, informer } = apiOf([]);
      const tag = (await ask(api, path)).headers.get("ETag")!;
      assert.equal((await ask(api, path, tag)).status, 304);
      informer.put(object("shop/a", 100_001));
      assert.equal((await ask(api, path, tag)).status, 200);
      informer.remove("shop/a", 100_002);
      const empty = await ask(api, path, tag);
      assert.equal(empty.status, 200, "an object was there meanwhile");
      assert.equal((await ask(api, path, empty.headers.get("ETag")!)).status, 304);
    }
  });

  it("of an object: 304 until the object changes, whatever happens to others", async () => {
    const { api, informer } = apiOf(pods(20));
    const path = "/api/v1/namespaces/shop/pods/p-00004";
    const tag = (await ask(api, path)).headers.get("ETag")!;
    assert.match(tag, /^W\/"/);
    informer.put(object("shop/p-00006", 100_001));
    assert.equal((await ask(api, path, tag)).status, 304);
    informer.put(object("shop/p-00004", 100_002));
    const changed = await ask(api, path, tag);
    assert.equal(changed.status, 200);
    const next = changed.headers.get("ETag")!;
    informer.put(object("shop/p-00004", 100_002, { spec: "under the same resourceVersion" }));
    assert.equal((await ask(api, path, next)).status, 200);
    informer.remove("shop/p-00004", 100_003);
    assert.equal((await ask(api, path, next)).status, 404);
  });

  it("of an object is another one after the server was restored from a backup", async () => {
    const { api, informer } = apiOf([object("shop/a", 70, { spec: 1 })]);
    const path = "/api/v1/namespaces/shop/pods/a";
    const tag = (await ask(api, path)).headers.get("ETag")!;
    informer.relist([], 60);
    informer.relist([object("shop/a", 70, { spec: 2 })], 80);
    assert.equal((await ask(api, path, tag)).status, 200);
  });

  it("differs between forms, selections, pages and users' pages", async () => {
    const { api } = apiOf(pods(20));
    const forms = [
      "",
      "?pretty=1",
      "?limit=3",
      "?limit=4",
      "?labelSelector=app%3Dapp-1",
      "?labelSelector=app%3Dapp-2",
      "?fieldSelector=spec.nodeName%3Dn-1",
    ];
    const metadata = { Accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io" };
    const tags = await Promise.all([
      ...forms.map(async (form) => (await ask(api, PATH + form)).headers.get("ETag")),
      ask(api, PATH, null, metadata).then((response) => response.headers.get("ETag")),
      ask(api, PATH, null, { Accept: "application/yaml" }).then((response) => response.headers.get("ETag")),
      ask(api, "/api/v1/namespaces/shop/pods").then((response) => response.headers.get("ETag")),
    ]);
    assert.equal(new Set(tags).size, tags.length);
    assert.ok(!tags.includes(null));
    const again = await ask(api, PATH, tags[0], { "Accept-Encoding": "gzip" });
    assert.equal(again.status, 304);
  });

  it("of an object differs between objects and forms", async () => {
    const { api } = apiOf(pods(20));
    const one = "/api/v1/namespaces/shop/pods/p-00000";
    const metadata = { Accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io" };
    const responses = await Promise.all([
      ask(api, one),
      ask(api, `${one}?pretty=1`),
      ask(api, one, null, { Accept: "application/yaml" }),
      ask(api, one, null, metadata),
      ask(api, "/api/v1/namespaces/shop/pods/p-00002"),
    ]);
    assert.equal(new Set(responses.map(({ headers }) => headers.get("ETag"))).size, 5);
  });

  it("is not on Tables, whose ages change by themselves, nor on past states and errors", async () => {
    const { api, informer } = apiOf(pods(20));
    informer.put(object("shop/new", 100_001));
    const table = { Accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };
    const responses = [
      await ask(api, PATH, null, table),
      await ask(api, `${PATH}?resourceVersion=100000&resourceVersionMatch=Exact`),
      await ask(api, "/api/v1/namespaces/shop/pods/absent"),
    ];
    for (const response of responses) assert.equal(response.headers.get("ETag"), null);
  });

  it("is never a 304 for a reader who may not read", async () => {
    const { api } = apiOf(pods(20), { allowAnonymous: undefined, authorize: allowNamespaces(["shop"]) });
    const tag = (await ask(api, "/api/v1/namespaces/shop/pods")).headers.get("ETag");
    for (const path of [PATH, "/api/v1/namespaces/blog/pods", "/api/v1/namespaces/blog/pods/p-00001"]) {
      assert.equal((await ask(api, path, "*")).status, 403);
      assert.equal((await ask(api, path, tag)).status, 403);
    }
  });
});
