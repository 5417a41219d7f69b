import { type KubernetesObject, newCluster, silentLogger } from "@listwatch/cache";
import { defineController, type ObjectEvents } from "@listwatch/cache/controller";
import { answerStatus, FakeClock, InMemoryApiServer } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EventRecorder } from "../../src/controller/event_recorder.ts";
import { LogRecorder } from "../log_recorder.ts";
import { type Rig, startRig, type Widget, widget } from "./rig.ts";
import { WIDGET_RESOURCE, WIDGETS } from "../widgets.ts";

const EVENTS = "events.k8s.io/v1/events";

interface Event extends KubernetesObject {
  readonly reason?: string;
  readonly note?: string;
  readonly series?: { readonly count: number; readonly lastObservedTime: string };
}

/** Starts a program whose reconciles of `a` hand out their recorder. */
async function startRecording(): Promise<{
  readonly rig: Rig;
  readonly events: ObjectEvents;
  /** The recorder of the reconcile that was last. */
  readonly latest: () => ObjectEvents;
  readonly stored: () => readonly Event[];
}> {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
  let events: ObjectEvents | undefined;
  const rig = startRig(
    (cluster) =>
      defineController({
        name: "widgets",
        for: cluster.resource<Widget>(WIDGETS),
        reconcile: (_, context) => void (events = context.events),
      }),
    {},
    { server, clock },
  );
  server.create(WIDGETS, widget("a", "red"));
  await clock.advance(1_000);
  return { rig, events: events!, latest: () => events!, stored: () => server.list<Event>(EVENTS).items };
}

const writesOf = (rig: Rig) => rig.writes().map((line) => line.split(" ")[0]);

describe("ObjectEvents", () => {
  it("have notes of 1,024 bytes at most, of whole characters", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    for (const note of ["ü".repeat(600), `x${"ü".repeat(600)}`, "x".repeat(1_024), "x".repeat(1_025)]) {
      events.normal("Painted", note, { action: String(note.length) });
    }
    await rig.clock.advance(1_000);
    const notes = stored().map(({ note = "" }) => note);
    assert.equal(notes.length, 4);
    assert.ok(notes.includes("x".repeat(1_024)));
    for (const note of notes) {
      assert.ok(new TextEncoder().encode(note).length <= 1_024, `${note.length}`);
      assert.match(note, /^x?ü{510}\.\.\.$|^x{1024}$|^x{1021}\.\.\.$/);
    }
  });

  it("are one series while they differ in the note only, as client-go's are", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    events.normal("Painted", "red");
    await rig.clock.advance(1_000);
    assert.equal(stored()[0].series, undefined);
    events.normal("Painted", "green");
    await rig.clock.advance(1_000);
    assert.deepEqual(stored()[0].series, { count: 2, lastObservedTime: "2026-01-01T00:00:02.000000Z" });
    for (let i = 0; i < 5; i++) events.normal("Painted", "blue");
    await rig.clock.advance(5 * 60_000);
    assert.equal(stored()[0].series?.count, 2);
    await rig.clock.advance(2 * 60_000); // six minutes after the last one the series ends
    assert.equal(stored()[0].series?.count, 7);
    assert.deepEqual([stored().length, stored()[0].note], [1, "red"]);
    assert.deepEqual(writesOf(rig), ["POST", "PATCH", "PATCH"]);
    events.normal("Painted", "red");
    await rig.clock.advance(1_000);
    assert.equal(stored().length, 2);
  });

  it("are several series of different types, reasons, actions and related objects", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    events.normal("Painted", "");
    events.warning("Painted", "");
    events.normal("Sold", "");
    events.normal("Painted", "", { action: "Spray" });
    for (const [name, uid] of [["b", "u-b"], ["b", "u-c"], ["c", "u-c"]]) {
      events.normal("Painted", "", { related: { metadata: { name, uid } } });
    }
    await rig.clock.advance(1_000);
    assert.equal(stored().length, 7);
  });

  it("are one series of all versions of an object, and others of another object", async () => {
    const { rig, events, latest, stored } = await startRecording();
    await using _ = rig;
    events.normal("Painted", "red");
    rig.server.patch(WIDGETS, "shop/a", { spec: { color: "blue" } });
    await rig.clock.advance(1_000);
    assert.notEqual(latest(), events);
    latest().normal("Painted", "blue");
    await rig.clock.advance(1_000);
    assert.deepEqual(stored().map(({ series }) => series?.count), [2]);
    rig.server.create(WIDGETS, widget("b", "red"));
    await rig.clock.advance(1_000);
    latest().normal("Painted", "red");
    await rig.clock.advance(1_000);
    assert.deepEqual(stored().map(({ series }) => series?.count).sort(), [2, undefined]);
  });

  it("are written again when the server has forgotten the series", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    events.normal("Painted", "red");
    await rig.clock.advance(1_000);
    rig.server.delete(EVENTS, stored()[0]);
    events.normal("Painted", "red");
    await rig.clock.advance(1_000);
    assert.equal(stored()[0].series?.count, 2);
  });

  it("are counted by the same write again where that has failed, and created by no other", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    events.normal("Painted", "red");
    await rig.clock.advance(1_000);
    rig.server.intercept(answerStatus(503), { times: 1, match: ({ method }) => method === "PATCH" });
    events.normal("Painted", "red");
    await rig.clock.advance(11_000);
    assert.deepEqual(stored().map(({ series }) => series?.count), [2]);
    assert.deepEqual(writesOf(rig), ["POST", "PATCH", "PATCH"]);
  });

  it("are written one after the other", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    let [open, most] = [0, 0];
    rig.server.intercept(async (request, next) => {
      most = Math.max(most, ++open);
      await new Promise<void>((resolve) => rig.clock.setTimeout(resolve, 10));
      return await next(request).finally(() => open--);
    }, { match: ({ method }) => method === "POST" });
    for (const reason of ["Painted", "Sold", "Lost"]) events.normal(reason, "");
    await rig.clock.advance(1_000);
    assert.deepEqual([stored().length, most], [3, 1]);
  });

  it("are counted further when the answer to the first one was lost", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    rig.server.intercept(async (request, next) => {
      await next(request);
      throw new TypeError("connection reset");
    }, { times: 1, match: ({ method }) => method === "POST" });
    events.normal("Painted", "red");
    await rig.clock.advance(20_000);
    assert.equal(stored().length, 1);
    assert.deepEqual(writesOf(rig), ["POST", "POST"]);
    events.normal("Painted", "red");
    await rig.clock.advance(1_000);
    assert.deepEqual(stored().map(({ series }) => series?.count), [2]);
    assert.deepEqual(rig.lines, []);
  });

  it("are counted on the server, too, where the second one came before the answer to the first one was lost", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    rig.server.intercept(async (request, next) => {
      await next(request);
      events.normal("Painted", "red");
      throw new TypeError("connection reset");
    }, { times: 1, match: ({ method }) => method === "POST" });
    events.normal("Painted", "red");
    await rig.clock.advance(20_000);
    assert.deepEqual(stored().map(({ series }) => series?.count), [2]);
    assert.deepEqual(rig.lines, []);
  });

  it("are tried twelve times, also where the server is busy, and then dropped", async () => {
    for (const code of [429, 500, 503]) {
      const { rig, events } = await startRecording();
      await using _ = rig;
      let tries = 0;
      const match = ({ method }: { readonly method: string }) => method === "POST" && ++tries > 0;
      rig.server.intercept(answerStatus(code), { match });
      events.normal("Painted", "red");
      await rig.clock.advance(109_000);
      assert.deepEqual([tries, rig.lines], [11, []], String(code));
      await rig.clock.advance(600_000);
      assert.equal(tries, 12);
      assert.match(
        rig.lines.join("\n"),
        /^warn Cannot write the event Painted about Widget a: .*it is dropped$/,
      );
    }
  });

  it("are written again once there is another one of a series that was dropped", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    const restore = rig.server.intercept(answerStatus(403), { match: ({ method }) => method === "POST" });
    events.normal("Painted", "red");
    await rig.clock.advance(60_000);
    restore();
    events.normal("Painted", "red");
    await rig.clock.advance(1_000);
    assert.deepEqual(stored().map(({ series }) => series?.count), [2]);
  });

  it("have the reason for an action where none is given", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    events.normal("Painted", "red");
    events.normal("Sold", "red", { action: "Sell" });
    await rig.clock.advance(1_000);
    const actions = stored().map((event) => (event as { readonly action?: string }).action);
    assert.deepEqual(actions.sort(), ["Painted", "Sell"]);
  });

  it("are not written again at the half hour where the server knows all of them", async () => {
    const { rig, events } = await startRecording();
    await using _ = rig;
    await rig.clock.advance(29 * 60_000);
    for (let i = 0; i < 2; i++) {
      events.normal("Painted", "red");
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.clock.advance(1_000);
    }
    assert.deepEqual(writesOf(rig), ["POST", "PATCH"]);
    await rig.clock.advance(5 * 60_000);
    assert.deepEqual(writesOf(rig), ["POST", "PATCH"]);
  });

  it("are tried again while the server is away, and dropped with a line when it refuses them", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    const isEvent = ({ method, path }: { method: string; path: string }) =>
      method === "POST" && path.endsWith("/events");
    rig.server.intercept(answerStatus(503), { times: 2, match: isEvent });
    events.normal("Painted", "red");
    await rig.clock.advance(25_000);
    assert.equal(stored().length, 1);
    rig.server.intercept(answerStatus(403), { times: 1, match: isEvent });
    events.normal("Sold", "red");
    await rig.clock.advance(25_000);
    assert.equal(stored().length, 1);
    assert.match(
      rig.lines.join("\n"),
      /^warn Cannot write the event Sold about Widget a: .*403.*it is dropped$/,
    );
  });

  it("are written whenever they come, also as the last write ends", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    const rounds = 60;
    for (let round = 0; round < rounds; round++) {
      rig.server.intercept(async (request, next) => {
        const response = await next(request);
        void (async () => {
          for (let i = 0; i < round; i++) await undefined;
          events.normal(`Late${round}`, "");
        })();
        return response;
      }, { times: 1, match: ({ method }) => method === "POST" });
      events.normal(`First${round}`, "");
      await rig.clock.advance(1_000);
      assert.equal(stored().length, 2 * (round + 1), `so many microtasks after the answer: ${round}`);
    }
  });

  it("are a series at once where the second one comes while the first one is written", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    rig.server.intercept(async (request, next) => {
      const response = await next(request);
      events.normal("Painted", "green");
      return response;
    }, { times: 1, match: ({ method }) => method === "POST" });
    events.normal("Painted", "red");
    await rig.clock.advance(1_000);
    assert.equal(stored()[0].series?.count, 2);
    assert.deepEqual(writesOf(rig), ["POST", "PATCH"]);
  });

  it("are a series of each controller", async () => {
    const clock = new FakeClock(Date.UTC(2026, 0, 1));
    const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
    const widgets = newCluster({ server: "http://in-memory", fetch: server.fetch, clock }).resource(WIDGETS);
    const stop = new AbortController();
    const recorder = new EventRecorder({ instance: "one", clock, logger: silentLogger, signal: stop.signal });
    for (const name of ["painter", "seller"]) {
      recorder.about(widget("a", "red"), name, widgets).normal("Done", "");
    }
    await clock.advance(0);
    assert.equal(server.list(EVENTS).items.length, 2);
    stop.abort();
    server.close();
  });

  it("of a namespace that is not there are sent once", async () => {
    const { rig, events } = await startRecording();
    await using _ = rig;
    rig.server.intercept(answerStatus(404), { match: ({ method }) => method === "POST" });
    events.normal("Painted", "red");
    await rig.clock.advance(60_000);
    assert.deepEqual(writesOf(rig), ["POST"]);
  });

  it("are looked at each minute: series of six minutes have ended, those of half an hour are counted", async () => {
    const clock = new FakeClock(Date.UTC(2026, 0, 1));
    const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
    const widgets = newCluster({ server: "http://in-memory", fetch: server.fetch, clock }).resource(WIDGETS);
    const stop = new AbortController();
    const own = { instance: "one", clock, logger: silentLogger, signal: stop.signal };
    const events = new EventRecorder(own).about(widget("a", "red"), "widgets", widgets);
    const counts = (of: string) =>
      server.list<Event>(EVENTS).items.filter(({ reason }) => reason === of).map(({ series }) =>
        series?.count
      );
    const isPatch = ({ method }: { readonly method: string }) => method === "PATCH";
    events.normal("Sold", "");
    for (let minute = 0; minute < 30; minute++) {
      events.normal("Painted", "");
      if (minute === 29) {
        server.intercept(async (request, next) => {
          const response = await next(request);
          events.normal("Painted", "while the count is written");
          return response;
        }, { times: 1, match: isPatch });
      }
      // deno-lint-ignore no-await-in-loop -- one after the other
      await clock.advance(60_000);
      if (minute === 5) events.normal("Sold", "");
    }
    await clock.advance(1_000);
    assert.deepEqual([counts("Sold"), counts("Painted")], [[undefined, undefined], [30]]);
    await clock.advance(7 * 60_000);
    assert.deepEqual([counts("Painted"), server.requests.filter(isPatch).length], [[31], 3]);
    stop.abort();
    server.close();
  });

  it("of a series that continues are counted on the server every half an hour, and no more often", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    const counts: number[] = [];
    const painted = () => stored().filter(({ reason }) => reason === "Painted");
    for (let minute = 0; minute < 125; minute++) {
      for (const reason of ["Painted", `Early${minute}`]) events.normal(reason, "red");
      // deno-lint-ignore-start no-await-in-loop -- one after the other
      await rig.clock.advance(30_000);
      events.normal(`Late${minute}`, ""); // new ones, more often than all are looked at
      await rig.clock.advance(30_000);
      // deno-lint-ignore-end no-await-in-loop
      const count = painted()[0].series?.count ?? 1;
      if (count !== counts.at(-1)) counts.push(count);
    }
    assert.equal(painted().length, 1);
    assert.deepEqual(counts.map((count) => Math.round(count / 10) * 10), [0, 0, 30, 60, 90, 120]);
  });

  it("fill no memory while the server is away: a thousand wait, the others are dropped", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    const restore = rig.server.intercept(answerStatus(503), { match: ({ method }) => method === "POST" });
    for (let i = 0; i < 1_500; i++) events.normal(`R${i}`, "");
    await rig.clock.advance(1_000);
    restore();
    await rig.clock.advance(60_000);
    assert.equal(stored().length, 1_000);
    assert.match(rig.lines.join("\n"), /Cannot write the event R1000 .*: too many events wait to be written/);
  });

  it("are remembered of 4,096 series at most: the oldest begins again", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    for (let i = 0; i < 4_097; i++) {
      events.normal(`R${i}`, "");
      // deno-lint-ignore no-await-in-loop -- fewer wait than are dropped
      if (i % 500 === 0) await rig.clock.advance(0);
    }
    await rig.clock.advance(1_000);
    assert.equal(stored().length, 4_097);
    for (const reason of ["R0", "R4096"]) events.normal(reason, "");
    await rig.clock.advance(1_000);
    assert.equal(stored().filter(({ reason }) => reason === "R0").length, 2);
    assert.equal(stored().find(({ reason }) => reason === "R4096")?.series?.count, 2);
  });

  it("are given up silently at the stop of a recorder that waits to try again", async () => {
    const clock = new FakeClock(Date.UTC(2026, 0, 1));
    const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
    server.intercept(answerStatus(503), { match: ({ method }) => method === "POST" });
    const widgets = newCluster({ server: "http://in-memory", fetch: server.fetch, clock }).resource(WIDGETS);
    const [logger, stop] = [new LogRecorder(), new AbortController()];
    const recorder = new EventRecorder({ instance: "one", clock, logger, signal: stop.signal });
    recorder.about(widget("a", "red"), "widgets", widgets).normal("Painted", "red");
    await clock.advance(1_000);
    assert.equal(recorder.pending, 1);
    stop.abort();
    await recorder.flushed();
    assert.deepEqual([recorder.pending, logger.lines, clock.pendingTimers], [0, [], 0]);
  });

  it("leave no timer when the program has stopped", async () => {
    for (const isFirst of [true, false]) {
      const { rig, events } = await startRecording();
      await using _ = rig;
      if (!isFirst) events.normal("Painted", "red");
      await rig.clock.advance(1_000);
      const stopped = rig.manager.stop();
      await rig.clock.advance(5_000);
      await stopped;
      rig.server.close();
      await rig.clock.advance(0);
      const writes = rig.writes().length;
      events.normal("Sold", "red");
      assert.equal(rig.clock.pendingTimers, 0);
      await rig.clock.advance(60_000);
      assert.equal(rig.writes().length, writes);
    }
  });

  it("end their series six minutes after the last one, and leave no timer then", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    const timers = rig.clock.pendingTimers;
    for (const reason of ["Painted", "Sold"]) events.normal(reason, "");
    await rig.clock.advance(0);
    assert.equal(rig.clock.pendingTimers, timers + 1);
    await rig.clock.advance(5 * 60_000);
    events.normal("Painted", "");
    await rig.clock.advance(5 * 60_000);
    events.normal("Painted", "");
    events.normal("Sold", "");
    await rig.clock.advance(7 * 60_000);
    assert.deepEqual(stored().map(({ reason, series }) => `${reason} ${series?.count ?? 1}`).sort(), [
      "Painted 3",
      "Sold 1",
      "Sold 1",
    ]);
    assert.equal(rig.clock.pendingTimers, timers);
  });

  it("say which controller of which process has seen what of which object", async () => {
    const clock = new FakeClock(Date.UTC(2026, 0, 1));
    const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
    const bodies: KubernetesObject[] = [];
    server.intercept(async (request, next) => {
      bodies.push(await request.clone().json());
      return await next(request);
    });
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
    const { signal } = new AbortController();
    const recorder = new EventRecorder({ instance: "i".repeat(200), clock, logger: silentLogger, signal });
    const things = cluster.resource<KubernetesObject>(WIDGETS);
    const metadata = { name: "n".repeat(253), namespace: "shop", uid: "u-1", resourceVersion: "7" };
    const thing = { apiVersion: "example.com/v1", kind: "Widget", metadata };
    const node = { apiVersion: "v1", kind: "Node", metadata: { name: "n", uid: "U-2" } };
    recorder.about(thing, "widgets", things).warning("Sold", "to whom", { action: "Sell", related: node });
    recorder.about({ ...node, metadata: { ...node.metadata, name: "N" } }, "widgets", things).normal(
      "Seen",
      "",
    );
    await clock.advance(1_000);
    assert.equal(recorder.pending, 0);
    const [{ metadata: made, ...event }, { metadata: ofNode }] = bodies;
    assert.deepEqual(event, {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      eventTime: "2026-01-01T00:00:00.000000Z",
      reportingController: "widgets",
      reportingInstance: "i".repeat(128),
      action: "Sell",
      reason: "Sold",
      regarding: { apiVersion: "example.com/v1", kind: "Widget", ...metadata },
      related: { apiVersion: "v1", kind: "Node", name: "n", uid: "U-2" },
      note: "to whom",
      type: "Warning",
    });
    assert.match(made!.name!, /^n{230}\.[0-9a-f]{14,22}$/);
    assert.match(ofNode!.name!, /^u-2\.[0-9a-f]{14,22}$/, "names of events have no capital letters");
    assert.deepEqual([made!.namespace, ofNode!.namespace], ["shop", "default"]);
  });

  it("are in the namespace of the object, and have its name and a time, in nanoseconds, that no other one has", async () => {
    const { rig, events, stored } = await startRecording();
    await using _ = rig;
    for (const reason of ["Painted", "Sold"]) events.normal(reason, "");
    await rig.clock.advance(1_000);
    const names = stored().map(({ metadata }) => metadata!.name!.split("."));
    assert.deepEqual(names.map(([name]) => name), ["a", "a"]);
    const times = names.map(([, hex]) => BigInt(`0x${hex}`));
    assert.deepEqual(times.map((time) => Number(time / 1_000_000n)), Array(2).fill(rig.clock.now() - 1_000));
    assert.notEqual(times[0], times[1]);
    assert.deepEqual(stored().map(({ metadata }) => metadata?.namespace), ["shop", "shop"]);
  });

  it("have a name that the server takes, whatever the object's is", async () => {
    const names: string[] = [];
    const clock = new FakeClock(Date.UTC(2026, 0, 1));
    const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
    await using _rig = startRig(
      (cluster) =>
        defineController({
          name: "roles",
          for: cluster.resource("rbac.authorization.k8s.io/v1/clusterroles"),
          reconcile: (_, { events }) => events.normal("Seen", ""),
        }),
      {},
      { server, clock },
    );
    for (const name of ["system:node", "Admin", `${"x".repeat(229)}.y`]) {
      server.create("rbac.authorization.k8s.io/v1/clusterroles", { metadata: { name } });
    }
    await clock.advance(1_000);
    for (const { metadata } of server.list(EVENTS).items) {
      names.push(metadata!.name!);
      assert.equal(metadata!.namespace, "default");
    }
    assert.equal(names.length, 3);
    for (const name of names) {
      assert.match(name, /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
    }
  });

  it("are from a controller whose name the server takes", () => {
    for (const name of ["widgets@eu", "widgets-", "-widgets", ""]) {
      assert.throws(
        () => defineController({ name, for: {} as never, reconcile: () => {} }),
        /Cannot define the controller ".*": a name has up to 63 letters/,
      );
    }
  });
});
