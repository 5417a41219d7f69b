import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { changesSince, type MetadataSource } from "../../src/informer/snapshot/progress.ts";

type Watched = Awaited<ReturnType<MetadataSource["watch"]>>;

describe("changesSince", () => {
  it("counts a quarantined change as one: a reader that lacks it has not reached the bookmark", async () => {
    const quarantined = {
      reason: "labels: expected a string",
      path: "metadata.labels",
      resourceVersion: "120",
    };
    const batches = [
      [{ type: "MODIFIED", object: { metadata: { name: "a", resourceVersion: "110" } } }],
      [{ type: "QUARANTINED", quarantined }],
      [{ type: "BOOKMARK", object: { metadata: { resourceVersion: "130" } } }],
    ];
    const source: MetadataSource = {
      list: () => Promise.reject(new Error("it lists nothing")),
      // deno-lint-ignore require-await -- as a source's
      watch: async () =>
        (async function* () {
          yield* batches;
        })() as Watched,
    };
    const { signal } = new AbortController();
    assert.deepEqual(await changesSince(source, { resourceVersion: "100", signal }), {
      lastChange: "120",
      through: "130",
    });
  });
});
