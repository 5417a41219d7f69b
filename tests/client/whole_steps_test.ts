import type { ListOptions, WatchItem } from "@listwatch/cache/reflector";
import { type KubernetesObject, newCluster } from "@listwatch/cache";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { wholeSteps } from "../../src/client/whole_steps.ts";
import { encodeMergedVersion } from "../../src/meta/merged_version.ts";

type Item = WatchItem<KubernetesObject>;

const merged = (...parts: number[]) =>
  encodeMergedVersion({ layout: "0123456789", parts: parts.map(String) });

function item(type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK", resourceVersion: string | number): Item {
  return { type, object: { metadata: { name: "x", resourceVersion: String(resourceVersion) } } } as Item;
}

async function batches(given: readonly (readonly Item[])[], from: string): Promise<string[][]> {
  async function* stream() {
    yield* given;
  }
  const found: string[][] = [];
  for await (const batch of wholeSteps(stream(), from)) {
    found.push(batch.map((each) => each.type === "QUARANTINED" ? each.type : each.type[0]));
  }
  return found;
}

describe("wholeSteps", () => {
  it("brings the events of a merged resource up to their bookmark, however they arrive", async () => {
    const [a, b] = [merged(3, 1), merged(4, 2)];
    const given = [
      [item("ADDED", 3)],
      [item("BOOKMARK", a), item("MODIFIED", 4)],
      [item("DELETED", 2), item("BOOKMARK", b)],
      [item("BOOKMARK", merged(5, 2))],
    ];
    assert.deepEqual(await batches(given, merged(2, 1)), [["A", "B"], ["M", "D", "B"], ["B"]]);
  });

  it("leaves the batches of every other resource, and of initial events, as they are", async () => {
    const plain = [[item("ADDED", 3)], [item("MODIFIED", 4), item("BOOKMARK", 9)]];
    assert.deepEqual(await batches(plain, "2"), [["A"], ["M", "B"]]);
    const initial = [
      [item("ADDED", 3)],
      [item("ADDED", 1), item("BOOKMARK", merged(3, 1)), item("MODIFIED", 4)],
      [item("BOOKMARK", merged(4, 1))],
    ];
    assert.deepEqual(await batches(initial, ""), [["A"], ["A", "B"], ["M", "B"]]);
  });

  it("brings an ERROR with what came before it, and the rest of a watch that ends without a bookmark", async () => {
    const error = { type: "ERROR", object: { code: 410 } } as unknown as Item;
    assert.deepEqual(await batches([[item("ADDED", 3)], [error]], merged(2, 1)), [["A", "E"]]);
    assert.deepEqual(await batches([[item("ADDED", 3)]], merged(2, 1)), [["A"]]);
    async function* stayingOpen() {
      yield [item("ADDED", 3), error];
      await new Promise(() => {});
    }
    assert.equal((await wholeSteps(stayingOpen(), merged(2, 1)).next()).value?.length, 2);
  });

  it("passes events with merged versions on at once", async () => {
    assert.deepEqual(await batches([[item("ADDED", merged(3, 1))]], merged(2, 1)), [["A"]]);
  });
});

describe("ResourceClient.watch of a merged resource", () => {
  const chunks = [
    [item("ADDED", 3)],
    [item("ADDED", 1), item("BOOKMARK", merged(3, 1))],
    [item("MODIFIED", 4)],
    [item("BOOKMARK", merged(4, 1))],
  ];

  it("has whole steps, from a merged version on and behind initial events; of others what arrives together", async () => {
    const fetch = () => {
      const pieces = chunks.map((chunk) => chunk.map((event) => `${JSON.stringify(event)}\n`).join(""));
      const body = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          const piece = pieces.shift();
          if (piece === undefined) controller.close();
          else controller.enqueue(new TextEncoder().encode(piece));
        },
      }, { highWaterMark: 0 });
      return new Response(body, { headers: { "Content-Type": "application/json" } });
    };
    const pods = newCluster({ server: "http://in-memory", fetch }).resource<KubernetesObject>("v1/pods");
    const lengths = async (options: ListOptions) =>
      (await Array.fromAsync(await pods.watch(options))).map(({ length }) => length);
    assert.deepEqual(await lengths({ resourceVersion: merged(2, 1) }), [3, 2]);
    assert.deepEqual(await lengths({ sendInitialEvents: true }), [1, 2, 2]);
    assert.deepEqual(await lengths({ resourceVersion: "2" }), [1, 2, 1, 1]);
  });
});
