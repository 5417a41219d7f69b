import assert from "node:assert/strict";
import { type KubernetesObject, type SharedIndexInformerOptions, StatusError } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import { DeltaFIFO } from "@listwatch/cache/queue";
import type { ListOptions, ListPage, ListWatchContext } from "@listwatch/cache/reflector";
import type { FakeWatcher } from "@listwatch/cache/testing";
import { type Answer, openWatch, ScriptedSource, statuses } from "../reflector/scripted_source.ts";
import { startObserved } from "./rig.ts";
import { describe, it } from "./storages.ts";

interface Metric extends KubernetesObject {
  readonly value: number;
}

type Options = SharedIndexInformerOptions<KubernetesObject>;

function metric(resourceVersion: string | undefined, value: number, uid?: string): Metric {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "a",
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    },
    value,
  };
}

function listOf(item: Metric, resourceVersion: string): ListPage<KubernetesObject> {
  return { metadata: { resourceVersion }, items: [item] };
}

const transform: Options["transform"] = (object) => ({ ...object, seen: true });
const noWatch = new StatusError(newStatus(405, "MethodNotAllowed", "the server does not allow this method"));

/** Hands objects on one by one as they arrive, as a client does. */
class ArrivingSource extends ScriptedSource {
  override async list(options: ListOptions, context: ListWatchContext): Promise<ListPage<KubernetesObject>> {
    const { items, ...page } = await super.list(options, context);
    const { intake = (item: unknown) => item } = context;
    return { ...page, items: items.map((item) => intake(item) as KubernetesObject) };
  }
}

/**
 * What an informer holds after each of two lists, and what handler and observer receive of the second one.
 */
async function relisted(first: Answer, second: readonly Answer[], options: Options = {}) {
  const watcher = openWatch();
  const source = new ArrivingSource(first, { watch: watcher });
  const { informer, recorder, observed, clock, stop } = await startObserved(source, options);
  const stored = () => (informer.indexer.getByKey("a") as Metric | undefined)?.value;
  const before = stored();
  recorder.take();
  observed.length = 0;
  source.then(...second, { watch: openWatch() });
  watcher.error(statuses.expired);
  await clock.advance(5_000);
  const after = stored();
  const received = recorder.take();
  await stop();
  assert.deepEqual(source.problems, []);
  assert.equal(source.left, 0);
  return { values: [before, after], received, observed, requests: source.requests };
}

const settings: Readonly<Record<string, Options>> = {
  "": {},
  ", with a transform,": { transform },
  ", with notifyUnchanged off,": { notifyUnchanged: false },
  ", with a DeltaFIFO,": {
    queue: (context) => new DeltaFIFO<KubernetesObject>({ ...context, emitDeltaTypeReplaced: true }),
  },
};

for (const [setting, options] of Object.entries(settings)) {
  describe(`SharedIndexInformer: a version that is given twice${setting}`, () => {
    it("is another state after a restore, as a list that went back says", async () => {
      const { values, received, observed } = await relisted(
        { list: listOf(metric("95", 1, "u"), "100") },
        [{ list: listOf(metric("95", 2, "u"), "97") }],
        options,
      );
      assert.deepEqual(values, [1, 2]);
      assert.deepEqual(received, ["update a@95>95"]);
      assert.equal(observed.length, 1);
    });

    it("is another state where the list's version stays as it is", async () => {
      const { values, received } = await relisted(
        { list: listOf(metric("1", 1, "u"), "1") },
        [{ list: listOf(metric("1", 2, "u"), "1") }],
        options,
      );
      assert.deepEqual(values, [1, 2]);
      assert.deepEqual(received, ["update a@1>1"]);
    });

    it("is another state in a list that advances: the server was restored, and has passed it since", async () => {
      const { values, received } = await relisted(
        { list: listOf(metric("95", 1, "u"), "100") },
        [{ list: listOf(metric("95", 2, "u"), "120") }],
        options,
      );
      assert.deepEqual(values, [1, 2]);
      assert.deepEqual(received, ["update a@95>95"]);
    });

    for (const version of ["0", "", undefined]) {
      it(`is another state where it is ${JSON.stringify(version)}, also in a list that advances`, async () => {
        const { values, received } = await relisted(
          { list: listOf(metric(version, 1, "u"), "10") },
          [{ list: listOf(metric(version, 2, "u"), "11") }],
          options,
        );
        assert.deepEqual(values, [1, 2]);
        assert.equal(received.length, 1);
      });
    }

    it("is another state where there is no uid, also in a list that advances", async () => {
      const { values } = await relisted(
        { list: listOf(metric("5", 1), "10") },
        [{ list: listOf(metric("5", 2), "11") }],
        options,
      );
      assert.deepEqual(values, [1, 2]);
    });
  });

  describe(`SharedIndexInformer: an event of the stored version with another content${setting}`, () => {
    it("is an update", async () => {
      const watcher = openWatch();
      const source = new ScriptedSource({ list: listOf(metric("10", 1, "u"), "10") }, { watch: watcher });
      const { informer, recorder, clock, stop } = await startObserved(source, options);
      recorder.take();
      watcher.modify(metric("10", 2, "u"));
      await clock.advance(0);
      assert.deepEqual(recorder.take(), ["update a@10>10"]);
      assert.equal((informer.indexer.getByKey("a") as Metric).value, 2);
      await stop();
    });
  });
}

describe("SharedIndexInformer with a server that can only be polled, and whose version stays as it is,", () => {
  for (const version of ["1", "0", ""]) {
    for (const transformed of [false, true]) {
      it(`shows what changes: version ${JSON.stringify(version)}${transformed ? ", transformed" : ""}`, async () => {
        let value = 0;
        let lists = 0;
        const source = {
          list: (
            _options: unknown,
            { intake = (item: unknown) => item }: { intake?: (item: unknown) => unknown },
          ) => {
            lists++;
            const items = [intake(metric(version, value, "u")) as KubernetesObject];
            return Promise.resolve({ metadata: { resourceVersion: version }, items });
          },
          watch: (): Promise<FakeWatcher> => Promise.reject(noWatch),
        };
        const { informer, recorder, clock, stop } = await startObserved(source as never, {
          reflector: { backoff: { nextDelayMs: () => 10_000 } },
          ...(transformed && { transform }),
        });
        recorder.take();
        for (value = 1; value <= 5; value++) {
          await clock.advance(10_000);
          assert.equal((informer.indexer.getByKey("a") as Metric).value, value);
          assert.equal(recorder.take().length, 1);
        }
        assert.equal(lists, 6);
        await stop();
      });
    }
  }
});
