import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, StatusError } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import {
  eachListItem,
  listAllPages,
  type ListerWatcher,
  type ListOptions,
  type ListPage,
  type PagerOptions,
} from "@listwatch/cache/reflector";

const expired = new StatusError(newStatus(410, "Expired", "the provided continue parameter is too old"));
const tooOld = new StatusError(newStatus(410, "Gone", "too old"));

/** A source that answers lists one after the other; an error is thrown. */
class Pages implements ListerWatcher<KubernetesObject> {
  readonly requests: ListOptions[] = [];
  readonly #answers: (ListPage<KubernetesObject> | Error)[];

  constructor(...answers: (ListPage<KubernetesObject> | Error)[]) {
    this.#answers = answers;
  }

  list(options: ListOptions): Promise<ListPage<KubernetesObject>> {
    this.requests.push(options);
    const answer = this.#answers.shift() ?? new Error("no more lists were expected");
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  }

  watch(): Promise<never> {
    return Promise.reject(new Error("a pager does not watch"));
  }
}

function page(names: string, resourceVersion: string, next?: string): ListPage<KubernetesObject> {
  return {
    metadata: {
      resourceVersion,
      ...(next === undefined ? {} : { continue: next, remainingItemCount: 7 }),
    },
    items: names.split("").map((name) => ({ metadata: { name } })),
  };
}

const signal = new AbortController().signal;

function names(items: readonly KubernetesObject[]): string {
  return items.map((item) => item.metadata?.name).join("");
}

function list(source: Pages, options: ListOptions, pager: Partial<PagerOptions> = {}) {
  return listAllPages(source, options, { signal, ...pager });
}

describe("listAllPages", () => {
  it("that fits into one page is that page", async () => {
    const source = new Pages(page("abc", "10"));
    const list = await listAllPages(source, { resourceVersion: "0", limit: 500 }, { signal });
    assert.equal(names(list.items), "abc");
    assert.deepEqual(list.metadata, { resourceVersion: "10" });
    assert.equal(list.paginated, false);
    assert.deepEqual(source.requests, [{ resourceVersion: "0", limit: 500 }]);
  });

  it("keeps limit and selectors on every page, and the resourceVersion on the first only", async () => {
    const source = new Pages(page("abcd", "10", "C1"), page("efgh", "10", "C2"), page("ij", "10"));
    const options = { resourceVersion: "0", resourceVersionMatch: "NotOlderThan", limit: 4 } as const;
    const result = await list(source, { ...options, labelSelector: "app=web" });
    assert.equal(names(result.items), "abcdefghij");
    assert.equal(result.paginated, true);
    assert.deepEqual(source.requests, [
      { ...options, labelSelector: "app=web" },
      { limit: 4, labelSelector: "app=web", continue: "C1" },
      { limit: 4, labelSelector: "app=web", continue: "C2" },
    ]);
  });

  it("has the resourceVersion of its first page", async () => {
    const result = await list(new Pages(page("a", "10", "C1"), page("b", "12")), { limit: 1 });
    assert.equal(result.metadata.resourceVersion, "10");
  });

  it("starts again in one page when the continue token has run out", async () => {
    const source = new Pages(page("ab", "10", "C1"), expired, page("xyz", "20"));
    const result = await list(source, { resourceVersion: "5", limit: 2 });
    assert.equal(names(result.items), "xyz");
    assert.equal(result.metadata.resourceVersion, "20");
    assert.equal(result.paginated, true);
    assert.deepEqual(source.requests, [
      { resourceVersion: "5", limit: 2 },
      { limit: 2, continue: "C1" },
      { resourceVersion: "5" },
    ]);
  });

  it("counts its items as pages come, and from the beginning when it starts again", async () => {
    const source = new Pages(page("ab", "10", "C1"), page("c", "10", "C2"), expired, page("xyz", "20"));
    const progress: (number | undefined)[][] = [];
    await list(source, { limit: 2 }, { onPage: (...counts) => void progress.push(counts) });
    assert.deepEqual(progress, [[2, 7], [3, 7], [3, undefined]]);
  });

  it("continues where a thousand pages in a row have nothing but what is quarantined", async () => {
    const broken = { metadata: {}, items: [], quarantined: [{ reason: "no name", path: "items[0]" }] };
    const pages = Array.from({ length: 1_000 }, (_, i) => ({ ...broken, metadata: { continue: `C${i}` } }));
    const result = await list(new Pages(...pages, broken), { limit: 1 });
    assert.equal(result.quarantined.length, 1_001);
  });

  it("fails when the list that starts again fails", async () => {
    const broken = new Error("it broke");
    await assert.rejects(list(new Pages(page("ab", "10", "C1"), expired, broken), { limit: 2 }), broken);
  });

  it("fails when the continue token has run out and starting again is not wanted", async () => {
    const source = new Pages(page("ab", "10", "C1"), expired);
    await assert.rejects(list(source, { limit: 2 }, { fullListIfExpired: false }), expired);
    assert.equal(source.requests.length, 2);
  });

  it("fails when a later page is lost for another reason", async () => {
    await assert.rejects(list(new Pages(page("ab", "10", "C1"), tooOld), { limit: 2 }), tooOld);
  });

  it("fails when the first page has expired: that is for the reflector to answer", async () => {
    const source = new Pages(expired);
    await assert.rejects(list(source, { resourceVersion: "5", limit: 2 }), expired);
    assert.equal(source.requests.length, 1);
  });

  it("fails when a page names itself as the next one: a proxy ignores the token, and it would never end", async () => {
    const source = new Pages(page("ab", "5", "x"), page("ab", "5", "x"));
    await assert.rejects(listAllPages(source, { limit: 2 }, { signal }), {
      name: "DecodeError",
      message: /follows itself/,
    });
    assert.equal(source.requests.length, 2);
    const items: (string | undefined)[] = [];
    const read = async () => {
      const source = new Pages(page("ab", "5", "x"), page("cd", "5", "y"), page("cd", "5", "y"));
      for await (const { metadata } of eachListItem(source, { limit: 2 })) items.push(metadata?.name);
    };
    await assert.rejects(read, /follows itself/);
    assert.equal(items.slice(0, 4).join(""), "abcd");
  });

  for (const [before, length] of [[0, 2], [0, 3], [1, 2], [5, 7], [100, 2], [3, 1_000]]) {
    it(`fails when pages go in a circle, of ${length} after ${before}: it would never end`, async () => {
      const most = 4 * (before + length);
      const circle = () =>
        new Pages(...Array.from({ length: most }, (_, i) => {
          const place = i < before ? i : before + (i - before) % length;
          return page("a", "5", `token ${place}`);
        }));
      const source = circle();
      await assert.rejects(list(source, { limit: 1 }), { name: "DecodeError", message: /follows itself/ });
      assert.ok(source.requests.length < most);
      const read = circle();
      const readAll = async () => {
        for await (const _ of eachListItem(read, { limit: 1 }));
      };
      await assert.rejects(readAll, { name: "DecodeError", message: /follows itself/ });
      assert.ok(read.requests.length < most);
    });
  }

  it("fails when pages without items go in a circle, and ends where their tokens are new ones", async () => {
    const empty = (count: number, tokens: number) =>
      Array.from({ length: count }, (_, i) => page("", "5", `token ${i % tokens}`));
    await assert.rejects(list(new Pages(...empty(20, 2)), { limit: 1 }), /follows itself/);
    assert.equal(names((await list(new Pages(...empty(20, 20), page("a", "5")), { limit: 1 })).items), "a");
  });

  it("fails after a thousand pages without items in a row, of which each names another: it would never end", async () => {
    const empty = Array.from({ length: 1_100 }, (_, i) => page("", "5", `token ${i}`));
    const refusal = { name: "DecodeError", message: "Cannot list: 1000 pages in a row are empty" };
    const source = new Pages(...empty);
    await assert.rejects(list(source, { limit: 1 }), refusal);
    assert.equal(source.requests.length, 1_000);
    await assert.rejects(async () => {
      for await (const _ of eachListItem(new Pages(...empty), { limit: 1 }));
    }, refusal);
    const quarantined = [{ reason: "it has no name", path: "" }];
    const between = [...empty];
    between[500] = page("a", "5", "token 500");
    between[900] = { ...empty[900], quarantined };
    between[1_099] = page("b", "5");
    assert.equal(names((await list(new Pages(...between), { limit: 1 })).items), "ab");
  });

  it("takes an empty continue token for the end", async () => {
    const source = new Pages(page("ab", "10", ""));
    assert.equal((await list(source, {})).paginated, false);
  });

  it("continues after a page without items", async () => {
    const source = new Pages(page("", "10", "C1"), page("a", "10"));
    assert.equal(names((await list(source, { limit: 2 })).items), "a");
  });

  it("collects what was quarantined on every page", async () => {
    const bad = (path: string) => [{ reason: "it has no name", path }];
    const source = new Pages(
      { ...page("a", "10", "C1"), quarantined: bad("items[1]") },
      { ...page("b", "10"), quarantined: bad("items[0]") },
    );
    const { quarantined } = await list(source, { limit: 2 });
    assert.deepEqual(quarantined.map((one) => one.path), ["items[1]", "items[0]"]);
  });

  it("forgets what was quarantined when it starts again", async () => {
    const source = new Pages(
      { ...page("a", "10", "C1"), quarantined: [{ reason: "it has no name", path: "items[1]" }] },
      expired,
      page("ab", "20"),
    );
    assert.deepEqual((await list(source, { limit: 2 })).quarantined, []);
  });

  it("reports after each page how far it has come", async () => {
    const progress: (number | undefined)[][] = [];
    const source = new Pages(page("ab", "10", "C1"), page("c", "10"));
    await list(source, { limit: 2 }, { onPage: (items, remaining) => progress.push([items, remaining]) });
    assert.deepEqual(progress, [[2, 7], [3, undefined]]);
  });

  it("does not change the items of a page that is all there is", async () => {
    const only = page("abc", "10");
    assert.equal((await list(new Pages(only), {})).items, only.items);
  });

  it("does not change the array of a first page that others follow", async () => {
    const first = page("ab", "10", "C1");
    await list(new Pages(first, page("c", "10")), { limit: 2 });
    assert.equal(first.items.length, 2);
  });
});
