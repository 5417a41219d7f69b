import assert from "node:assert/strict";
import { type KubernetesObject, NamespaceSet, newCluster, type ResourceClient } from "@listwatch/cache";
import { DeltaFIFO } from "@listwatch/cache/queue";
import { memorySnapshot } from "@listwatch/cache/snapshots";
import { startObserved, text } from "./rig.ts";
import { describe, it } from "./storages.ts";

/** A pod as JSON, written `a@1` or `shop/a@1`. */
function pod(written: string): string {
  const [, namespace = "default", name, resourceVersion] = /^(?:(\w+)\/)?(\w+)@(\d+)$/.exec(written)!;
  return JSON.stringify({ metadata: { namespace, name, resourceVersion }, spec: { is: written } });
}

/** Lists pages, written `a@1 b@2`, one list after the other; the watches are open until one is ended. */
class Lists {
  readonly #lists: (readonly string[])[];
  readonly #watches: ReadableStreamDefaultController<Uint8Array>[] = [];
  /** What a streamed list is answered with. */
  stream = "";
  #version = 10;

  constructor(...lists: (readonly string[])[]) {
    this.#lists = lists;
  }

  client(namespaces?: readonly string[]): ResourceClient<KubernetesObject> {
    const cluster = newCluster({ server: "http://lists", fetch: (url) => this.#answer(new URL(url)) });
    return cluster.resource("v1/pods", namespaces && { namespaces: new NamespaceSet(namespaces) });
  }

  /** Ends the open watches, so that everything is listed again. */
  expire(): void {
    const status = { kind: "Status", apiVersion: "v1", status: "Failure", reason: "Expired", code: 410 };
    for (const watch of this.#watches.splice(0)) {
      watch.enqueue(new TextEncoder().encode(`${JSON.stringify({ type: "ERROR", object: status })}\n`));
      watch.close();
    }
  }

  #answer({ searchParams, pathname }: URL): Promise<Response> {
    if (pathname.endsWith("/kube-system")) {
      return Promise.resolve(Response.json({ metadata: { name: "kube-system", uid: "one" } }));
    }
    if (searchParams.has("watch")) {
      return Promise.resolve(
        new Response(
          new ReadableStream({
            start: (controller) => {
              if (searchParams.has("sendInitialEvents")) {
                controller.enqueue(new TextEncoder().encode(this.stream));
              }
              this.#watches.push(controller);
            },
          }),
        ),
      );
    }
    const page = Number(searchParams.get("continue") ?? 0);
    const list = this.#lists[0];
    const isLast = page === list.length - 1;
    if (isLast && this.#lists.length > 1) this.#lists.shift();
    const namespace = /namespaces\/(\w+)\//.exec(pathname)?.[1];
    const items = list[page].split(" ").filter((one) => !namespace || one.startsWith(`${namespace}/`)).map(
      pod,
    );
    const metadata = {
      resourceVersion: String(this.#version++),
      ...(!isLast && { continue: String(page + 1) }),
    };
    return Promise.resolve(
      new Response(
        `{"kind":"PodList","apiVersion":"v1","metadata":${JSON.stringify(metadata)},"items":[${items}]}`,
      ),
    );
  }
}

/** What is written of a key: its calls without those of other objects. */
function of(name: string, calls: readonly string[]): string[] {
  return calls.filter((call) => call.includes(` ${name}@`));
}

describe("SharedIndexInformer: a list that has a key twice", () => {
  for (const list of [["a@1 b@2 a@3"], ["a@1 b@2", "a@3"]]) {
    it(`is an add and an update, on ${list.length} pages`, async () => {
      const { informer, recorder, observed, stop } = await startObserved(new Lists(list).client());
      assert.deepEqual(recorder.take(), ["add a@1 initial", "add b@2 initial", "update a@1>3"]);
      assert.deepEqual(observed, ["replaced"]);
      assert.deepEqual(informer.indexer.list().map(text).sort(), ["a@3", "b@2"]);
      assert.equal(informer.indexer.lastStoreSyncResourceVersion(), "10");
      await stop();
    });

    it(`is an add and an update, on ${list.length} pages, with a DeltaFIFO`, async () => {
      const { informer, recorder, stop } = await startObserved(new Lists(list).client(), {
        queue: (context) => new DeltaFIFO(context),
      });
      assert.deepEqual(of("a", recorder.take()), ["add a@1 initial", "update a@1>3"]);
      assert.deepEqual(informer.indexer.list().map(text).sort(), ["a@3", "b@2"]);
      await stop();
    });
  }

  it("is two updates of what is stored, each of the state before, for handlers and observers", async () => {
    const lists = new Lists(["a@1 b@2"], ["a@3 b@2 a@4 c@5 a@4 c@6"]);
    const { clock, informer, recorder, stop } = await startObserved(lists.client());
    const changes: string[] = [];
    informer.observe((event) => {
      if (event.type !== "replaced") return;
      for (const change of event.changes) {
        const before = change.type === "updated" ? `${text(change.oldObject)}>` : "";
        changes.push(`${change.type} ${before}${text(change.object)}`);
      }
    });
    recorder.take();
    lists.expire();
    await clock.advance(60_000);
    const calls = recorder.take();
    assert.deepEqual(of("a", calls), ["update a@1>3", "update a@3>4"]);
    assert.deepEqual(of("c", calls), ["add c@5", "update c@5>6"]);
    assert.deepEqual(of("b", calls), ["update b@2>2"]);
    assert.deepEqual(changes, ["updated a@1>a@3", "added c@5", "updated a@3>a@4", "updated c@5>c@6"]);
    assert.deepEqual(informer.indexer.list().map(text).sort(), ["a@4", "b@2", "c@6"]);
    await stop();
  });

  it("is stored under the last state's values in indices, and as it was where that is refused", async () => {
    const lists = new Lists(["a@1 b@2 a@3"], ["a@4 b@2 a@5 c@6 c@7"]);
    const { clock, informer, recorder, stop } = await startObserved(lists.client(), {
      indexers: {
        byState: (object) => {
          const { is } = (object as { spec?: { is?: string } }).spec!;
          if (is === "a@5" || is === "c@7") throw new Error("not this one");
          return [is!];
        },
      },
    });
    assert.deepEqual(informer.indexer.listIndexFuncValues("byState").sort(), ["a@3", "b@2"]);
    recorder.take();
    lists.expire();
    await clock.advance(60_000);
    assert.deepEqual(recorder.take(), ["update a@3>3", "update b@2>2"]);
    assert.deepEqual(informer.indexer.listIndexFuncValues("byState").sort(), ["a@3", "b@2"]);
    assert.deepEqual(informer.indexer.list().map(text).sort(), ["a@3", "b@2"]);
    await stop();
  });

  it("reaches a slow handler in the state that is stored, whatever is merged behind it", async () => {
    const lists = new Lists(["a@1 b@2 a@3"], ["a@4 b@2 c@1 a@5"], ["a@6 a@7 d@8 d@9"]);
    const source = lists.client();
    const { clock, informer, stop } = await startObserved(source);
    const calls: string[] = [];
    const free = Promise.withResolvers<void>();
    informer.addEventHandler({
      async onAdd(object) {
        await free.promise;
        calls.push(`add ${text(object)}`);
      },
      onUpdate: (before, after) => void calls.push(`update ${text(before)}>${text(after)}`),
      onDelete: ({ key }) => void calls.push(`delete ${key}`),
    }, { mailbox: { limit: 1 } });
    for (let i = 0; i < 2; i++) {
      lists.expire();
      await clock.advance(60_000);
    }
    free.resolve();
    await clock.advance(0);
    const known = new Map<string, string>();
    for (const call of calls) {
      const [verb, what] = call.split(" ");
      if (verb === "delete") {
        assert.ok(known.delete(what.slice(-1)), calls.join());
        continue;
      }
      const [before, after = before] = what.split(">");
      const name = after[0];
      assert.equal(known.get(name), verb === "add" ? undefined : before, calls.join());
      known.set(name, after);
    }
    assert.deepEqual([...known.values()].sort(), informer.indexer.list().map(text).sort());
    assert.deepEqual([...known.values()].sort(), ["a@7", "d@9"]);
    await stop();
  });

  it("is one add of the last state where it is streamed: as in client-go, which gathers it first", async () => {
    const lists = new Lists(["x@1"]);
    const event = (type: string, object: string) => `{"type":"${type}","object":${object}}\n`;
    const end = JSON.stringify({
      kind: "Pod",
      apiVersion: "v1",
      metadata: { resourceVersion: "9", annotations: { "k8s.io/initial-events-end": "true" } },
    });
    const typed = (written: string) => pod(written).replace("{", '{"kind":"Pod","apiVersion":"v1",');
    lists.stream = ["a@1", "b@2", "a@3"].map((one) => event("ADDED", typed(one))).join("") +
      event("BOOKMARK", end);
    const { informer, recorder, stop } = await startObserved(lists.client(), {
      reflector: { useWatchList: true },
    });
    assert.deepEqual(of("a", recorder.take()), ["add a@3 initial"]);
    assert.deepEqual(informer.indexer.list().map(text).sort(), ["a@3", "b@2"]);
    await stop();
  });

  it("is an add and an update of a namespace, and those of the others stay", async () => {
    const lists = new Lists(["shop/a@1 blog/b@2 shop/a@3 blog/c@4"]);
    const { clock, informer, recorder, stop } = await startObserved(lists.client(["shop", "blog"]));
    await clock.until(() => informer.hasSynced());
    const calls = recorder.take();
    assert.deepEqual(of("a", calls), ["add a@1 initial", "update a@1>3"]);
    assert.deepEqual(informer.indexer.listKeys().sort(), ["blog/b", "blog/c", "shop/a"]);
    await stop();
  });

  it("is saved in a snapshot once", async () => {
    const snapshot = memorySnapshot();
    const first = await startObserved(new Lists(["a@1 b@2 a@3"]).client(), { snapshot });
    await first.stop();
    const next = new Lists(["a@3 b@2 a@3"]);
    const again = await startObserved(next.client(), { snapshot: memorySnapshot({ after: snapshot }) });
    assert.deepEqual(again.recorder.take(), ["add a@3 initial", "add b@2 initial"]);
    assert.deepEqual(again.informer.indexer.list().map(text).sort(), ["a@3", "b@2"]);
    await again.stop();
  });
});
