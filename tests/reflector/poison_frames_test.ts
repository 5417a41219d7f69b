import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Metrics, newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import type { Quarantined } from "@listwatch/cache/reflector";
import { FakeClock } from "@listwatch/cache/testing";

const pod = (name: string, resourceVersion: string) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "shop", resourceVersion },
});
const frame = (type: string, object: unknown) => JSON.stringify({ type, object }) + "\n";
const list = (resourceVersion: string, ...items: unknown[]) =>
  JSON.stringify({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion }, items });

/** An informer whose server sends these watches, one after the other, and then one that stays open. */
async function afterWatches(watches: readonly string[], { useWatchList = false } = {}) {
  const clock = new FakeClock();
  const requests: string[] = [];
  const quarantined: Quarantined[] = [];
  let counted = 0;
  const metrics: Metrics = {
    count: (name, value) => {
      if (name === "reflector_quarantined_total") counted += value;
    },
    gauge: () => {},
    observe: () => {},
  };
  let opened = 0;
  const cluster = newCluster({
    server: "http://poisoned",
    clock,
    logger: silentLogger,
    fetch: (input, init) => {
      const query = new URL(input).searchParams;
      const isWatch = query.get("watch") === "true";
      const match = query.get("resourceVersionMatch");
      requests.push(
        `${isWatch ? "watch" : "list"} ${query.get("resourceVersion") ?? ""}${
          !isWatch && match ? ` ${match}` : ""
        }`,
      );
      if (!isWatch) return Promise.resolve(new Response(list("10", pod("a", "3"))));
      const text = watches[opened++];
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          if (text !== undefined) controller.enqueue(new TextEncoder().encode(text));
          init?.signal?.addEventListener("abort", () => controller.error(init.signal!.reason));
        },
      });
      return Promise.resolve(new Response(body));
    },
  });
  const informer = new SharedIndexInformer(cluster.resource("v1/pods", { maxFrameBytes: 1_000 }), {
    clock,
    metrics,
    logger: silentLogger,
    reflector: {
      useWatchList,
      watchListPageSize: 100,
      random: () => 0,
      onQuarantined: (one) => quarantined.push(one),
    },
  });
  const running = informer.start();
  await clock.advance(2_000);
  const { quarantined: total } = informer.status();
  await running.stop();
  return { requests, quarantined, total, counted, keys: informer.indexer.listKeys() };
}

describe("Quarantine of a frame that could not be decoded", () => {
  const poisons: Readonly<Record<string, { readonly text: string; readonly reason: RegExp }>> = {
    "no JSON": {
      text: "<html>502</html>\n",
      reason: /unable to decode an event from the watch stream: .*JSON/,
    },
    "over the size limit": { text: `${"x".repeat(2_000)}\n`, reason: /a frame is larger than 1000 bytes/ },
    "of an unknown type": {
      text: frame("RENAMED", pod("b", "12")),
      reason: /invalid watch event type: "RENAMED"/,
    },
    "a list on one line": {
      text: `${list("12", pod("b", "12"))}\n`,
      reason: /invalid watch event type: undefined/,
    },
    "without an object": { text: '{"type":"MODIFIED"}\n', reason: /the MODIFIED event has no object/ },
  };
  for (const [what, { text, reason }] of Object.entries(poisons)) {
    it(`as it is ${what} is counted and reported, with how far the watch had come; then all is listed again`, async () => {
      const sound = frame("ADDED", pod("b", "11"));
      const result = await afterWatches([sound + text]);
      assert.deepEqual(result.requests, ["list 0", "watch 10", "list 11 NotOlderThan", "watch 10"]);
      assert.equal(result.total, 1);
      assert.equal(result.counted, 1);
      assert.equal(result.quarantined.length, 1);
      assert.match(result.quarantined[0].reason, reason);
      const bytes = new TextEncoder().encode(sound + text).length;
      assert.ok(result.quarantined[0].reason.endsWith(`(within the first ${bytes} bytes of the watch)`));
      assert.equal(result.quarantined[0].path, "frame");
    });
  }

  it("is counted in a streamed list too, in place of which a list is made", async () => {
    const result = await afterWatches([`${frame("ADDED", pod("a", "3"))}{\n`], { useWatchList: true });
    assert.deepEqual(result.requests, ["watch ", "list 0", "watch 10"]);
    assert.deepEqual([result.total, result.counted], [1, 1]);
    assert.deepEqual(result.keys, ["shop/a"]);
  });

  it("is no other ERROR event: those are not counted", async () => {
    const status = {
      kind: "Status",
      apiVersion: "v1",
      status: "Failure",
      reason: "InternalError",
      code: 500,
    };
    const result = await afterWatches([frame("ERROR", status)]);
    assert.deepEqual(result.requests, ["list 0", "watch 10", "list 10", "watch 10"]);
    assert.deepEqual([result.total, result.counted], [0, 0]);
  });
});
