import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isExpired, type KubernetesObject, newCluster } from "@listwatch/cache";
import { eachListItem, type ListOptions, type Quarantined } from "@listwatch/cache/reflector";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { CountingSignal } from "../counting_signal.ts";

/** A source of so many pages, one item on each; records its requests and their times. */
class Pages {
  readonly requests: ListOptions[] = [];
  readonly #count: number;

  constructor(count: number) {
    this.#count = count;
  }

  async list(options: ListOptions) {
    this.requests.push(options);
    await Promise.resolve();
    const index = Number(options.continue ?? 0);
    return {
      metadata: index + 1 < this.#count ? { continue: String(index + 1) } : {},
      items: [{ metadata: { name: `pod-${index}` } }] as KubernetesObject[],
    };
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 100; i++) await Promise.resolve();
}

async function names(items: AsyncIterable<KubernetesObject>): Promise<string[]> {
  const found: string[] = [];
  for await (const item of items) found.push(item.metadata?.name ?? "");
  return found;
}

describe("eachListItem", () => {
  it("are those of all pages, in order", async () => {
    using server = new InMemoryApiServer();
    for (let i = 0; i < 7; i++) server.create("v1/pods", pod(`web-${i}`));
    const pods = newCluster({ server: "http://in-memory", fetch: server.fetch }).resource("v1/pods");
    assert.deepEqual(
      await names(eachListItem(pods, { limit: 3 })),
      [0, 1, 2, 3, 4, 5, 6].map((i) => `web-${i}`),
    );
    assert.equal(server.requests.length, 3);
  });

  it("come in pages of 500 where the limit is 0, too, as it is in a request", async () => {
    const pages = new Pages(1);
    await names(eachListItem(pages, { limit: 0 }));
    assert.deepEqual(pages.requests, [{ limit: 500 }]);
  });

  it("come in pages of 500 where no limit is named, with the resourceVersion in the first request only", async () => {
    const source = new Pages(2);
    await names(
      eachListItem(source, { resourceVersion: "7", resourceVersionMatch: "Exact", labelSelector: "a" }),
    );
    assert.deepEqual(source.requests, [
      { resourceVersion: "7", resourceVersionMatch: "Exact", labelSelector: "a", limit: 500 },
      { labelSelector: "a", limit: 500, continue: "1" },
    ]);
  });

  it("are requested while others are read, so many pages ahead and no more", async () => {
    const source = new Pages(10);
    const items = eachListItem(source, {}, { pageBufferSize: 2 });
    await items.next();
    await settle();
    assert.equal(source.requests.length, 3); // one is read, two wait
    await items.next();
    await settle();
    assert.equal(source.requests.length, 4);
    await items.return();
    await settle();
    assert.equal(source.requests.length, 4);
  });

  it("are requested five pages ahead by default", async () => {
    const source = new Pages(10);
    const items = eachListItem(source);
    await items.next();
    await settle();
    assert.equal(source.requests.length, 6);
    await items.return();
  });

  it("end the request that is under way when the loop is left", async () => {
    let reason: unknown;
    const source = {
      list: (options: ListOptions, { signal }: { readonly signal: AbortSignal }) =>
        options.continue === undefined
          ? Promise.resolve({ metadata: { continue: "1" }, items: ["a"] })
          : new Promise<never>(() => signal.addEventListener("abort", () => (reason = signal.reason))),
    };
    for await (const item of eachListItem<string>(source)) {
      assert.equal(item, "a");
      break;
    }
    assert.equal((reason as Error).name, "AbortError");
  });

  it("leave no listener at the signal", async () => {
    const counting = new CountingSignal();
    await names(eachListItem(new Pages(3), {}, { signal: counting.signal }));
    assert.equal(counting.listeners, 0);
  });

  it("end with the signal's reason", async () => {
    const stop = new AbortController();
    const items = eachListItem(new Pages(3), {}, { signal: stop.signal, pageBufferSize: 1 });
    await items.next();
    stop.abort(new Error("enough"));
    await assert.rejects(names(items), /enough/);
  });

  it("end with the error where a token has run out: what was handed out is not handed out again", async () => {
    using server = new InMemoryApiServer();
    for (let i = 0; i < 6; i++) server.create("v1/pods", pod(`web-${i}`));
    const pods = newCluster({ server: "http://in-memory", fetch: server.fetch }).resource("v1/pods");
    const found: string[] = [];
    await assert.rejects(async () => {
      for await (const item of eachListItem(pods, { limit: 1 }, { pageBufferSize: 1 })) {
        found.push(item.metadata?.name ?? "");
        server.create("v1/configmaps", { metadata: { name: `tick-${found.length}` } });
        server.compact();
      }
    }, isExpired);
    assert.ok(found.length >= 1 && found.length < 6, `${found}`);
  });

  it("leave out what was not accepted, and report it before the items of its page", async () => {
    const reports: unknown[] = [];
    const broken: Quarantined = { reason: "no name", path: "items[0]" };
    const source = { list: () => Promise.resolve({ metadata: {}, items: ["b"], quarantined: [broken] }) };
    const items = eachListItem<string>(source, {}, { onQuarantined: (report) => reports.push(report) });
    for await (const item of items) reports.push(item);
    assert.deepEqual(reports, [broken, "b"]);
  });

  it("cannot be read without a page in hand", async () => {
    await assert.rejects(eachListItem(new Pages(1), {}, { pageBufferSize: 0 }).next(), RangeError);
  });
});
