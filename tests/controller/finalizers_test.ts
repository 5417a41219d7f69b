import { defineController, type Result } from "@listwatch/cache/controller";
import type { Cluster, KubernetesObject } from "@listwatch/cache";
import { answerStatus, FakeClock, InMemoryApiServer } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Rig, startRig, type Widget, widget } from "./rig.ts";
import { WIDGET_RESOURCE, WIDGETS } from "../widgets.ts";

interface RecordedEvent extends KubernetesObject {
  readonly note?: string;
  readonly regarding?: { readonly resourceVersion?: string };
}

const FINALIZER = "example.com/widget";

type Finalize = NonNullable<Parameters<typeof defineController<Widget>>[0]["finalize"]>;

function startWith(finalize: Finalize, shared: Parameters<typeof startRig>[2] = {}): Rig {
  const define = (cluster: Cluster) =>
    defineController<Widget>({
      name: "widgets",
      for: cluster.resource<Widget>(WIDGETS),
      when: () => false, // the beginning of a deletion counts nevertheless
      reconcile: () => {},
      finalizer: FINALIZER,
      finalize,
    });
  return startRig(define, {}, shared);
}

const present = (rig: Rig) => rig.server.get<Widget>(WIDGETS, "shop/a");

async function startDeletion(rig: Rig, finalizers: readonly string[] = []): Promise<void> {
  rig.server.create(WIDGETS, widget("a", "red", { finalizers }));
  await rig.clock.advance(1_000);
  assert.deepEqual(present(rig)?.metadata?.finalizers, [...finalizers, FINALIZER]);
  rig.server.delete(WIDGETS, "shop/a");
}

describe("ControllerOptions.finalizer", () => {
  it("is no failure where the object is deleted before it gets it: nothing is called", async () => {
    let calls = 0;
    const define = (cluster: Cluster) =>
      defineController<Widget>({
        name: "widgets",
        for: cluster.resource<Widget>(WIDGETS),
        reconcile: () => void calls++,
        finalizer: FINALIZER,
        finalize: () => void calls++,
      });
    await using rig = startRig(define);
    rig.server.intercept((request, next) => {
      rig.server.delete(WIDGETS, "shop/a");
      return next(request);
    }, { match: ({ method }) => method === "PATCH", times: 1 });
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => present(rig) === undefined);
    await rig.clock.advance(10_000);
    assert.deepEqual([calls, rig.manager.pending, rig.writes().length], [0, 0, 1]);
    assert.deepEqual(rig.lines.filter((line) => !line.startsWith("info")), []);
  });

  it("is tried again after a 404 of an object that is there, which is none about a status", async () => {
    await using rig = startWith(() => {});
    rig.server.intercept(answerStatus(404), { match: ({ method }) => method === "PATCH", times: 1 });
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.clock.advance(2_000);
    assert.deepEqual(present(rig)?.metadata?.finalizers, [FINALIZER]);
    assert.match(rig.lines[0], /^warn Cannot reconcile shop\/a, and tries again: .* 404/);
    assert.doesNotMatch(rig.lines[0], /subresource/);
  });
});

describe("ControllerOptions.finalize", () => {
  it("may return a status, which is written while it is not done", async () => {
    let result: Result = { status: { color: "fading" }, requeueAfterMs: 5_000 };
    await using rig = startWith(() => result);
    await startDeletion(rig);
    await rig.clock.advance(1_000);
    assert.equal(present(rig)?.status?.color, "fading");
    result = {};
    await rig.clock.advance(5_000);
    assert.equal(present(rig), undefined);
  });

  it("is tried again if the kind has no status: the object is still there", async () => {
    const clock = new FakeClock();
    const customResources = [{ ...WIDGET_RESOURCE, statusSubresource: false }];
    const server = new InMemoryApiServer({ clock, customResources });
    let result: Result = { status: { color: "none" } };
    await using rig = startWith(() => result, { server, clock });
    await startDeletion(rig);
    await rig.clock.advance(1_000);
    assert.deepEqual(present(rig)?.metadata?.finalizers, [FINALIZER]);
    assert.match(
      rig.lines[0],
      /^warn Cannot reconcile shop\/a, and tries again: .* 404.*does its definition have the subresource "status"/,
    );
    result = {};
    await rig.clock.advance(5_000);
    assert.equal(present(rig), undefined);
    server.close();
  });

  it("may return a status with its end, where other finalizers remain", async () => {
    await using rig = startWith(() => ({ status: { color: "none" } }));
    await startDeletion(rig, ["example.com/other"]);
    await rig.clock.advance(1_000);
    assert.equal(present(rig)?.status?.color, "none");
    assert.deepEqual(present(rig)?.metadata?.finalizers, ["example.com/other"]);
  });

  it("may change the object, which is no conflict when the finalizer is removed", async () => {
    let count = 0;
    await using rig = startWith(async ({ metadata }, { self }) => {
      await self.patch(metadata!.name!, { metadata: { annotations: { tries: String(++count) } } });
    });
    await startDeletion(rig);
    await rig.clock.advance(1_000);
    assert.equal(present(rig), undefined);
    assert.equal(count, 1);
  });

  it("is done when the object is no longer there although the finalizer was to be removed", async () => {
    await using rig = startWith((_, { key }) => {
      rig.server.patch(WIDGETS, key, { metadata: { finalizers: null } });
    });
    await startDeletion(rig);
    await rig.clock.advance(1_000);
    assert.equal(present(rig), undefined);
    assert.deepEqual(rig.lines, []);
  });

  it("may remove the finalizer itself: nothing more is written", async () => {
    await using rig = startWith(async ({ metadata }, { self }) => {
      await self.patch(metadata!.name!, { metadata: { finalizers: ["example.com/other"] } });
    });
    await startDeletion(rig, ["example.com/other"]);
    const before = rig.writes().length;
    await rig.clock.advance(1_000);
    assert.equal(rig.writes().length, before + 1);
    assert.deepEqual(present(rig)?.metadata?.finalizers, ["example.com/other"]);
  });

  it("is called until it succeeds, and nothing else of the object is", async () => {
    let left = 3;
    await using rig = startWith(() => {
      if (left-- > 0) throw new Error("not yet");
    });
    await startDeletion(rig);
    await rig.clock.advance(1_000);
    assert.equal(present(rig), undefined);
    assert.equal(left, -1);
  });
});

describe("ControllerOptions.finalizer", () => {
  it("is added once, before the first reconcile, which has the object with it", async () => {
    const seen: unknown[] = [];
    await using rig = startRig((cluster) =>
      defineController<Widget>({
        name: "widgets",
        for: cluster.resource<Widget>(WIDGETS),
        when: "generation",
        finalizer: FINALIZER,
        finalize: () => {},
        reconcile: ({ metadata, spec }, { events }) => {
          seen.push(metadata?.finalizers, spec);
          if (seen.length === 2) events.normal("Seen", metadata!.resourceVersion!);
          return { status: { color: spec?.color } };
        },
      })
    );
    rig.server.create(WIDGETS, widget("a", "red", { finalizers: ["example.com/other"] }));
    await rig.clock.advance(1_000);
    const finalizers = ["example.com/other", FINALIZER];
    assert.deepEqual(seen, [finalizers, { color: "red" }]);
    assert.equal(present(rig)?.status?.color, "red");
    rig.server.patch(WIDGETS, "shop/a", { spec: { color: "blue" } });
    await rig.clock.advance(1_000);
    assert.deepEqual(seen.slice(2), [finalizers, { color: "blue" }]);
    const path = "/apis/example.com/v1/namespaces/shop/widgets/a";
    const writes = rig.writes().filter((write) => write.includes("/widgets/"));
    assert.deepEqual(writes, [`PATCH ${path}`, `PATCH ${path}/status`, `PATCH ${path}/status`]);
    const [event] = rig.server.list<RecordedEvent>("events.k8s.io/v1/events").items;
    assert.equal(event.regarding?.resourceVersion, event.note); // the object with its finalizer
    assert.deepEqual(rig.lines.filter((line) => !line.startsWith("info")), []);
  });

  it("is removed by another try where that fails", async () => {
    let calls = 0;
    await using rig = startWith(() => void calls++);
    await startDeletion(rig);
    rig.server.intercept(answerStatus(500), { match: ({ method }) => method === "PATCH", times: 1 });
    await rig.until(() => present(rig) === undefined);
    assert.equal(calls, 2);
    const problems = rig.lines.filter((line) => !line.startsWith("info"));
    assert.equal(problems.length, 1);
    assert.match(problems[0], /^warn Cannot reconcile shop\/a, and tries again: Cannot patch/);
  });

  it("stays where the status that goes with its removal is not written, and is tried again", async () => {
    await using rig = startWith(() => ({ status: { color: "none" } }));
    await startDeletion(rig, ["example.com/other"]);
    const isStatus = ({ path }: { readonly path: string }) => path.endsWith("/status");
    rig.server.intercept(answerStatus(500), { match: isStatus, times: 1 });
    await rig.clock.advance(1);
    assert.doesNotMatch(rig.lines.join("\n"), /subresource/); // only a 404 says that there may be none
    assert.deepEqual(present(rig)?.metadata?.finalizers, ["example.com/other", FINALIZER]);
    await rig.until(() => present(rig)?.status?.color === "none");
    await rig.clock.advance(1_000);
    assert.deepEqual(present(rig)?.metadata?.finalizers, ["example.com/other"]);
  });

  it("of another program holds up nothing: the object is left alone", async () => {
    let calls = 0;
    await using rig = startWith(() => void calls++);
    await startDeletion(rig, ["example.com/other"]);
    await rig.clock.advance(1_000);
    assert.deepEqual(present(rig)?.metadata?.finalizers, ["example.com/other"]);
    const count = rig.writes().length;
    rig.server.patch(WIDGETS, "shop/a", { metadata: { labels: { a: "1" } } });
    await rig.clock.advance(1_000);
    assert.deepEqual([calls, rig.writes().length], [1, count]);
  });

  it("of another program says nothing to a controller without one, whatever changes during the deletion", async () => {
    let calls = 0;
    await using rig = startRig((cluster) =>
      defineController<Widget>({
        name: "widgets",
        for: cluster.resource<Widget>(WIDGETS),
        reconcile: () => void calls++,
      })
    );
    rig.server.create(WIDGETS, widget("a", "red", { finalizers: ["example.com/other"] }));
    await rig.until(() => calls === 1);
    rig.server.delete(WIDGETS, "shop/a");
    await rig.clock.advance(1_000);
    rig.server.patch(WIDGETS, "shop/a", { metadata: { labels: { a: "1" } } });
    await rig.clock.advance(1_000);
    assert.deepEqual([calls, rig.manager.pending], [1, 0]);
    assert.deepEqual(rig.lines.filter((line) => !line.startsWith("info")), []);
  });
});
