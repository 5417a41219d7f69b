import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, metaNamespaceKey, StatusError } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import type { ListPage, WatchItem } from "@listwatch/cache/reflector";
import { newStore } from "@listwatch/cache/store";
import { FakeClock } from "@listwatch/cache/testing";
import {
  ANSWER_MS,
  changesSince,
  ClusterCheck,
  currentState,
  currentVersion,
  isEqualTo,
  type MetadataSource,
} from "../../src/informer/snapshot/progress.ts";
import { encodeMergedVersion } from "../../src/meta/merged_version.ts";
import { DecodeError } from "../../src/meta/request.ts";
import { page } from "../reflector/scripted_source.ts";

type Watched = Awaited<ReturnType<MetadataSource["watch"]>>;
type Item = WatchItem<KubernetesObject>;

const { signal } = new AbortController();
const quarantined = { reason: "labels: expected a string", path: "metadata.labels", resourceVersion: "120" };

/** A source that answers with such a page, or with such items of a watch. */
function answering(list: ListPage<KubernetesObject>, ...items: Item[]): MetadataSource {
  return {
    list: () => Promise.resolve(list),
    // deno-lint-ignore require-await -- as a source's
    watch: async () =>
      (async function* () {
        for (const item of items) yield [item];
      })() as Watched,
  };
}

const modified = (resourceVersion: string): Item => {
  return { type: "MODIFIED", object: { metadata: { name: "a", resourceVersion } } };
};
const bookmark = (resourceVersion: string): Item => {
  return { type: "BOOKMARK", object: { metadata: { resourceVersion } } };
};

describe("changesSince", () => {
  const since = (...items: Item[]) =>
    changesSince(answering(page("", ""), ...items), { resourceVersion: "100", signal });

  it("counts a quarantined change as one: a reader that lacks it has not reached the bookmark", async () => {
    assert.deepEqual(await since(modified("110"), { type: "QUARANTINED", quarantined }, bookmark("130")), {
      lastChange: "120",
      through: "130",
    });
    const { resourceVersion: _, ...unknown } = quarantined;
    const answer = await since(
      modified("110"),
      { type: "QUARANTINED", quarantined: unknown },
      bookmark("130"),
    );
    assert.equal(answer?.lastChange, "110");
  });

  it("has the last change before the first bookmark, if there was one; and nothing where no bookmark comes", async () => {
    assert.deepEqual(await since(bookmark("130"), modified("140")), { lastChange: "", through: "130" });
    assert.deepEqual(await since(modified("110"), modified("120"), bookmark("130")), {
      lastChange: "120",
      through: "130",
    });
    assert.equal(await since(modified("110")), undefined);
  });

  it("has the version of the bookmark for a change of a merged resource, which has one of its own", async () => {
    const merged = encodeMergedVersion({ layout: "0000000001", parts: ["130", "7"] });
    assert.deepEqual(await since(modified("130"), bookmark(merged)), { lastChange: merged, through: merged });
    assert.deepEqual(await since(bookmark(merged)), { lastChange: "", through: merged });
  });

  it("throws what the server ends the watch with", async () => {
    await assert.rejects(since({ type: "ERROR", object: newStatus(410, "Expired", "too old") }), StatusError);
  });
});

describe("currentVersion", () => {
  it("is that of a list, which has to have one", async () => {
    assert.equal(await currentVersion(answering(page("a@1", "10")), signal), "10");
    await assert.rejects(
      currentVersion(answering(page("a@1", "")), signal),
      /the list has no resourceVersion/,
    );
  });
});

describe("currentState", () => {
  const stateOf = (list: ListPage<KubernetesObject>) =>
    currentState(answering(list), { maxObjects: 2, signal });

  it("has the versions of all objects, unless there are too many, or one cannot be read", async () => {
    const state = await stateOf(page("a@1 b@2", "10"));
    assert.deepEqual(state, { resourceVersion: "10", versions: new Map([["a", "1"], ["b", "2"]]) });
    assert.equal(await stateOf(page("a@1 b@2 c@3", "10")), undefined);
    assert.equal(await stateOf(page("a@1 b@2", "10", "more")), undefined);
    assert.equal(await stateOf({ ...page("a@1", "10"), quarantined: [quarantined] }), undefined);
    assert.equal((await stateOf({ ...page("a@1", "10"), quarantined: [] }))?.versions.size, 1);
  });

  it("is that of a store with the same objects at the same versions, and no other", async () => {
    const state = (await stateOf(page("a@1 b@2", "10")))!;
    const isOf = (written: string) => {
      const store = newStore<KubernetesObject>(metaNamespaceKey);
      store.replace(page(written, "10").items, "10");
      return isEqualTo(state, store);
    };
    assert.deepEqual(["a@1 b@2", "a@1", "a@1 b@2 c@3", "a@1 b@3", "a@1 c@2"].map(isOf), [
      true,
      false,
      false,
      false,
      false,
    ]);
  });
});

describe("ClusterCheck", () => {
  function newCheck(answer: () => Promise<string>) {
    const clock = new FakeClock();
    let asked = 0;
    const clusterUid = () => (asked++, answer());
    const check = new ClusterCheck({ source: { clusterUid } as never, clock });
    return { check, clock, asked: () => asked };
  }
  const refusal = (code: number) => () => Promise.reject(new StatusError(newStatus(code, "", "no")));

  it("knows another cluster by its uid, and asks once", async () => {
    for (const [saved, isOther] of [["one", false], ["two", true], [undefined, false]] as const) {
      const { check, asked } = newCheck(() => Promise.resolve("one"));
      check.loaded(saved);
      assert.deepEqual([check.uid, check.isUndecided, check.isOther], [saved, saved !== undefined, false]);
      await check.read(signal);
      await check.read(signal);
      assert.deepEqual([check.uid, check.isUndecided, check.isOther, asked()], ["one", false, isOther, 1]);
      assert.deepEqual(check.status(), { clusterUid: "one" });
    }
  });

  it("asks again after a list, and says whether it is another one now", async () => {
    let uid = "one";
    const { check, asked } = newCheck(() => Promise.resolve(uid));
    check.loaded("one");
    assert.equal(await check.readAgain(signal), false);
    uid = "two";
    assert.deepEqual([await check.readAgain(signal), asked()], [true, 2]);
  });

  it("is decided where the server refuses to say it, and not where it may say it later", async () => {
    for (const code of [400, 403, 404, 499]) {
      const { check } = newCheck(refusal(code));
      check.loaded("one");
      await check.read(signal);
      assert.deepEqual([check.isUndecided, check.isOther], [false, false], String(code));
      assert.match(check.status().clusterUnknown ?? "", /no/);
    }
    for (const code of [401, 408, 429, 500, 503]) {
      const { check } = newCheck(refusal(code));
      check.loaded("one");
      await assert.rejects(check.read(signal), StatusError);
      assert.equal(check.isUndecided, true, String(code));
    }
  });

  it("goes without it where a proxy answers with something else, or not at all", async () => {
    const other = newCheck(() => Promise.reject(new DecodeError("a page")));
    other.check.loaded("one");
    await other.check.read(signal);
    assert.deepEqual(other.check.status(), { clusterUnknown: "a page" });
    const silent = newCheck(() => new Promise(() => {}));
    const reading = silent.check.read(signal);
    await silent.clock.advance(ANSWER_MS);
    await reading;
    assert.match(silent.check.status().clusterUnknown ?? "", /no answer within 30000 ms/);
  });

  it("asks nothing of a source that cannot say it", async () => {
    const check = new ClusterCheck({ source: {} as never, clock: new FakeClock() });
    check.loaded("one");
    await check.read(signal);
    assert.deepEqual([check.isUndecided, check.isOther, check.uid], [false, false, "one"]);
  });
});
