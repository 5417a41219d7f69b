import { newStatus } from "@listwatch/cache/client";
import { StatusError } from "@listwatch/cache";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OwnWrites } from "../../src/controller/own_writes.ts";
import type { CachedResource, Written } from "../../src/controller/cached_resource.ts";

const refused = (code: number, reason: string) => new StatusError(newStatus(code, reason, ""));

describe("OwnWrites", () => {
  /** A cache that records what is looked for, and never has it. */
  const cache = () => {
    const asked: Written[] = [];
    const resource = {
      has: (written: Written) => (asked.push(written), false),
      waitFor: () => Promise.resolve(false),
      presentVersion: () => Promise.resolve("50"),
    };
    return { asked, resource: resource as unknown as CachedResource };
  };
  const never = new AbortController().signal;

  it("wait for the highest version of each namespace", () => {
    const { resource, asked } = cache();
    const writes = new OwnWrites();
    for (const [version, of] of [["9", "x"], ["11", "x"], ["10", "x"], ["7", "y"]]) {
      writes.wrote(resource, version, of);
    }
    assert.equal(writes.isInCaches(), false);
    assert.deepEqual([...asked[0].versions], [["x", "11"], ["y", "7"]]);
  });

  it("ask the server after a write that may have been made, and after no other", () => {
    const mayBe = [refused(408, "Timeout"), refused(500, ""), refused(504, "Timeout"), new Error("reset")];
    const isNot = [refused(400, "BadRequest"), refused(409, "Conflict"), refused(429, "TooManyRequests")];
    for (const error of [...mayBe, ...isNot]) {
      const writes = new OwnWrites();
      writes.failed(cache().resource, error);
      assert.equal(writes.isEmpty, isNot.includes(error as StatusError), String(error));
    }
  });

  it("are read from the server in one reconcile, and waited for again in the next", async () => {
    const { resource, asked } = cache();
    const writes = new OwnWrites();
    writes.wrote(resource, "11");
    await writes.settle({ timeoutMs: 1, signal: never });
    assert.deepEqual([writes.readsThrough(resource), writes.isInCaches()], [true, true]);
    writes.ended();
    assert.deepEqual([writes.readsThrough(resource), writes.isInCaches()], [false, false]);
    assert.deepEqual([...asked.at(-1)!.versions], [["", "50"]]); // the server's: 11 may never come
  });

  describe("that come while one waits", () => {
    /** A cache that has reached a version, and whose waits and questions end as the test says. */
    const slowCache = () => {
      const cache = {
        reached: "5",
        waits: [] as ((isThere: boolean) => void)[],
        questions: [] as ((version: string) => void)[],
      };
      const resource = {
        has: ({ versions, unseen, answered }: Written) =>
          unseen === answered &&
          [...versions.values()].every((version) => Number(version) <= Number(cache.reached)),
        waitFor: () => new Promise<boolean>((end) => cache.waits.push(end)),
        presentVersion: () => new Promise<string>((end) => cache.questions.push(end)),
      };
      return { cache, resource: resource as unknown as CachedResource };
    };

    it("are waited for, too", async () => {
      const { cache, resource } = slowCache();
      const writes = new OwnWrites();
      writes.wrote(resource, "10");
      const settled = writes.settle({ timeoutMs: 1, signal: never });
      writes.wrote(resource, "20");
      cache.reached = "10";
      cache.waits[0](true);
      await settled;
      assert.equal(writes.isInCaches(), false);
      cache.reached = "20";
      assert.equal(writes.isInCaches(), true);
      assert.equal(writes.isEmpty, true);
    });

    it("outlast a wait for earlier ones that ends after them", async () => {
      const { cache, resource } = slowCache();
      const writes = new OwnWrites();
      writes.wrote(resource, "10");
      const both = [1, 2].map(() => writes.settle({ timeoutMs: 1, signal: never }));
      cache.reached = "10";
      cache.waits[0](true);
      await both[0];
      writes.wrote(resource, "20");
      cache.waits[1](true);
      await both[1];
      assert.equal(writes.isInCaches(), false);
    });

    it("cause another question where they may have been made after the question", async () => {
      const { cache, resource } = slowCache();
      const writes = new OwnWrites();
      writes.unseen(resource);
      const settled = writes.settle({ timeoutMs: 1, signal: never });
      writes.unseen(resource);
      cache.reached = "10";
      cache.questions[0]("10");
      await Promise.resolve();
      await Promise.resolve();
      cache.waits[0](true);
      await settled;
      assert.equal(writes.isInCaches(), false);
    });

    it("are waited for where the cache was given up for older ones", async () => {
      const { cache, resource } = slowCache();
      const writes = new OwnWrites();
      writes.wrote(resource, "10", "x");
      const settled = writes.settle({ timeoutMs: 1, signal: never });
      cache.waits[0](false);
      await Promise.resolve();
      await Promise.resolve();
      writes.wrote(resource, "20", "x");
      cache.questions[0]("8"); // the server was restored from a backup: 10 may never come
      await settled;
      writes.ended();
      cache.reached = "8";
      assert.equal(writes.isInCaches(), false);
      cache.reached = "20";
      assert.equal(writes.isInCaches(), true);
    });

    it("cause a question of each read that waits for them", async () => {
      const { cache, resource } = slowCache();
      const writes = new OwnWrites();
      writes.unseen(resource);
      const both = [1, 2].map(() => writes.settle({ timeoutMs: 1, signal: never }));
      assert.deepEqual([cache.questions.length, cache.waits.length], [2, 0]);
      cache.reached = "10";
      for (const answer of cache.questions) answer("10");
      await Promise.resolve();
      await Promise.resolve();
      for (const end of cache.waits) end(true);
      await Promise.all(both);
      assert.equal(writes.isInCaches(), true);
    });

    it("cause the question again where it was not answered", async () => {
      const writes = new OwnWrites();
      const { resource } = slowCache();
      const away = Object.assign(resource, { presentVersion: () => Promise.reject(new Error("away")) });
      writes.unseen(away);
      await assert.rejects(writes.settle({ timeoutMs: 1, signal: never }), /away/);
      assert.equal(writes.isInCaches(), false);
    });
  });
});
