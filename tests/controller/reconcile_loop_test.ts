import { type KubernetesObject, StatusError } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import type { LogFields } from "@listwatch/cache/reflector";
import {
  type Condition,
  defineController,
  retryOnConflict,
  TerminalError,
  withCondition,
} from "@listwatch/cache/controller";
import { answerStatus, configMap, FakeClock, InMemoryApiServer } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { startRig, widget, widgetController } from "./rig.ts";
import { WIDGET_RESOURCE, WIDGETS } from "../widgets.ts";

const ROLES = "rbac.authorization.k8s.io/v1/clusterroles";

function newServer(): { readonly clock: FakeClock; readonly server: InMemoryApiServer } {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  return { clock, server: new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] }) };
}

describe("Manager.run", () => {
  it("reconciles what is there and what comes, writes the status, and then nothing more", async () => {
    await using rig = startRig(widgetController);
    const { server, until, writes } = rig;
    server.create(WIDGETS, widget("a", "red"));
    await until(() => rig.manager.status().isLeading);
    server.create(WIDGETS, widget("b", "blue"));
    const color = (name: string) =>
      server.get<KubernetesObject & { data?: { color: string } }>("v1/configmaps", `shop/widget-${name}`)
        ?.data?.color;
    await until(() => color("a") === "red" && color("b") === "blue");
    await until(() => rig.manager.pending === 0);
    assert.deepEqual((server.get(WIDGETS, "shop/a") as { status?: unknown }).status, {
      ready: true,
      color: "red",
    });
    assert.equal(writes().length, 4);
    await rig.clock.advance(60_000);
    assert.equal(writes().length, 4);
    server.patch(WIDGETS, "shop/a", { spec: { color: "green" } });
    await until(() => color("a") === "green");
    await rig.clock.advance(60_000);
    assert.equal(writes().length, 6);
    assert.deepEqual(rig.lines.filter((line) => !line.startsWith("info")), []);
  });

  it("gives a reconcile the manager's clock, so that conditions have the time of a test", async () => {
    await using rig = startRig((cluster) =>
      defineController({
        name: "widgets",
        for: cluster.resource<KubernetesObject & { status?: { conditions?: Condition[] } }>(WIDGETS),
        reconcile({ status }, { clock }) {
          const ready = { type: "Ready", status: "True", reason: "Made", message: "" } as const;
          const now = new Date(clock.now());
          return { status: { conditions: withCondition(status?.conditions, ready, { now }) } };
        },
      })
    );
    await rig.clock.advance(2_000);
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.clock.advance(5_000);
    const { status } = rig.server.get<KubernetesObject & { status?: { conditions: Condition[] } }>(
      WIDGETS,
      "shop/a",
    )!;
    assert.equal(status?.conditions[0].lastTransitionTime, "2026-01-01T00:00:02.000Z");
  });

  it("restores an owned object that another client deletes or changes", async () => {
    await using rig = startRig(widgetController);
    const { server, until } = rig;
    server.create(WIDGETS, widget("a", "red"));
    await until(() => server.get("v1/configmaps", "shop/widget-a") !== undefined);
    server.delete("v1/configmaps", "shop/widget-a");
    await until(() => server.get("v1/configmaps", "shop/widget-a") !== undefined);
    server.patch("v1/configmaps", "shop/widget-a", { data: { color: "wrong" } });
    const data = () => (server.get("v1/configmaps", "shop/widget-a") as { data?: unknown } | undefined)?.data;
    await until(() => JSON.stringify(data()) === '{"color":"red"}');
  });

  it("tries again after a failure, and not after a TerminalError before the next change", async () => {
    let calls = 0;
    await using rig = startRig((cluster) =>
      defineController({
        name: "broken",
        for: cluster.resource("v1/configmaps"),
        reconcile: (object) => {
          calls++;
          if (object.metadata?.labels?.bad) throw new TerminalError("it is bad");
          if (calls < 4) throw new Error("not yet");
        },
      })
    );
    rig.server.create("v1/configmaps", configMap("a"));
    await rig.until(() => calls === 4);
    await rig.clock.advance(60_000);
    assert.equal(calls, 4);
    rig.server.patch("v1/configmaps", "default/a", { metadata: { labels: { bad: "yes" } } });
    await rig.until(() => calls === 5);
    await rig.clock.advance(3_600_000);
    assert.equal(calls, 5);
    assert.ok(
      rig.lines.some((line) =>
        /^error Cannot reconcile default\/a, and waits for its next change/.test(line)
      ),
    );
  });

  it("counts the failures of a key up to its next success, or up to the end of the object", async () => {
    const failures: number[] = [];
    let isFailing = true;
    await using rig = startRig((cluster) =>
      defineController({
        name: "broken",
        for: cluster.resource("v1/configmaps"),
        reconcile: (_, context) => {
          failures.push(context.failures);
          if (isFailing) throw new Error("not yet");
        },
      })
    );
    const touch = (value: string) =>
      rig.server.patch("v1/configmaps", "default/a", { metadata: { labels: { value } } });
    rig.server.create("v1/configmaps", configMap("a"));
    await rig.until(() => failures.length === 3);
    isFailing = false;
    await rig.until(() => failures.length === 4);
    isFailing = true;
    touch("1");
    await rig.until(() => failures.length === 6);
    rig.server.delete("v1/configmaps", "default/a");
    await rig.clock.advance(60_000);
    const count = failures.length;
    rig.server.create("v1/configmaps", configMap("a"));
    await rig.until(() => failures.length === count + 2);
    assert.deepEqual(failures.slice(0, 6), [0, 1, 2, 3, 0, 1]);
    assert.deepEqual(failures.slice(count), [0, 1]);
  });

  it("reconciles what changes before the objects of the start", async () => {
    const { clock, server } = newServer();
    for (const name of ["a", "b"]) server.create(WIDGETS, widget(name, "red"));
    const began: string[] = [];
    const ends: (() => void)[] = [];
    await using rig = startRig(
      (cluster) =>
        defineController({
          name: "widgets",
          for: cluster.resource(WIDGETS),
          reconcile({ metadata }) {
            began.push(metadata!.name!);
            return new Promise<void>((end) => void ends.push(end));
          },
        }),
      {},
      { clock, server },
    );
    await rig.until(() => began.length === 1);
    server.create(WIDGETS, widget("c", "red"));
    for (let count = 1; count < 3; count++) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.clock.advance(10);
      ends.at(-1)!();
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.until(() => began.length === count + 1);
    }
    assert.deepEqual(began, ["a", "c", "b"]);
    ends.at(-1)!();
    server.close();
  });

  it("takes the colon in a name for a part of it, where there are no clusters", async () => {
    const keys: string[] = [];
    await using rig = startRig((cluster) =>
      defineController({
        name: "roles",
        for: cluster.resource(ROLES),
        watches: {
          maps: {
            resource: cluster.resource<KubernetesObject>("v1/configmaps"),
            keys: () => ["system:node"],
          },
        },
        reconcile: (_, { key }) => void keys.push(key),
      })
    );
    rig.server.create(ROLES, { metadata: { name: "system:node" } });
    await rig.until(() => keys.length === 1);
    rig.server.create("v1/configmaps", configMap("a"));
    await rig.until(() => keys.length === 2, 1_000);
    assert.deepEqual(keys, ["system:node", "system:node"]);
  });

  it("logs with the controller, the key, and what a reconcile adds", async () => {
    const lines: [level: string, message: string, fields: LogFields | undefined][] = [];
    const note = (level: string) => (message: string, fields?: LogFields) =>
      void lines.push([level, message, fields]);
    const logger = { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") };
    const failures: readonly Error[] = [
      new Error("not yet"),
      new StatusError(newStatus(409, "Conflict", "it has changed")),
      new TerminalError("never"),
    ];
    await using rig = startRig(
      (cluster) =>
        defineController({
          name: "maps",
          for: cluster.resource("v1/configmaps"),
          reconcile: (_, { log, failures: count }) => {
            if (count === 0) {
              for (const level of ["debug", "info", "warn", "error"] as const) {
                log[level](level, { of: "test" });
              }
              log.info("bare");
            }
            throw failures[count];
          },
        }),
      { logger },
    );
    const of = { controller: "maps", key: "default/a" };
    rig.server.create("v1/configmaps", configMap("a"));
    await rig.clock.advance(5_000);
    const own = lines.filter(([, , fields]) => fields?.controller !== undefined);
    assert.deepEqual(own, [
      ["debug", "debug", { ...of, of: "test" }],
      ["info", "info", { ...of, of: "test" }],
      ["warn", "warn", { ...of, of: "test" }],
      ["error", "error", { ...of, of: "test" }],
      ["info", "bare", of],
      ["warn", "Cannot reconcile default/a, and tries again: not yet", {
        ...of,
        error: failures[0],
        tries: 1,
      }],
      ["debug", "default/a has changed meanwhile: it has changed", { ...of, tries: 2 }],
      [
        "error",
        "Cannot reconcile default/a, and waits for its next change: never",
        { ...of, error: failures[2] },
      ],
    ]);
    // The failures before it do not count any more.
    lines.length = 0;
    rig.server.patch("v1/configmaps", "default/a", { metadata: { labels: { value: "1" } } });
    await rig.clock.advance(5_000);
    assert.deepEqual(lines.map(([, message]) => message), own.map(([, message]) => message));
  });

  it("tries again soon after a conflict, without an error", async () => {
    await using rig = startRig(widgetController);
    rig.server.intercept(answerStatus(409), { match: ({ method }) => method === "PATCH", times: 3 });
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() =>
      (rig.server.get(WIDGETS, "shop/a") as { status?: { ready?: boolean } }).status?.ready === true
    );
    assert.deepEqual(rig.lines.filter((line) => !line.startsWith("info")), []);
  });
});

describe("withCondition", () => {
  const ready = { type: "Ready", status: "True", reason: "Configured", message: "" } as const;
  const times = (conditions: readonly Condition[]) => conditions.map((each) => each.lastTransitionTime);

  it("keeps the time while the status stays, also where one is given, as apimachinery does", () => {
    const first = withCondition([], { ...ready, lastTransitionTime: "2026-01-01T00:00:00Z" });
    assert.deepEqual(times(first), ["2026-01-01T00:00:00Z"]);
    const same = withCondition(first, { ...ready, lastTransitionTime: "2026-01-02T00:00:00Z" });
    assert.deepEqual(same, first);
    assert.deepEqual(times(withCondition(first, { ...ready, reason: "Changed" })), ["2026-01-01T00:00:00Z"]);
    const other = withCondition(same, {
      ...ready,
      status: "False",
      lastTransitionTime: "2026-01-03T00:00:00Z",
    });
    assert.deepEqual(times(other), ["2026-01-03T00:00:00Z"]);
    assert.deepEqual(times(withCondition(other, ready, { now: new Date(0) })), ["1970-01-01T00:00:00.000Z"]);
  });
});

describe("retryOnConflict", () => {
  it("tries five times, 10 ms apart, and no other error again", async () => {
    const clock = new FakeClock();
    for (
      const [error, tries] of [[newStatus(409, "Conflict", "c"), 5], [newStatus(500, "", "x"), 1]] as const
    ) {
      const times: number[] = [];
      const startMs = clock.now();
      const failed = retryOnConflict(() => {
        times.push(clock.now() - startMs);
        return Promise.reject(new StatusError(error));
      }, { clock }).then(() => undefined, (thrown: unknown) => thrown);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await clock.advance(1_000);
      // deno-lint-ignore no-await-in-loop -- one after the other
      assert.equal((await failed as StatusError).status, error);
      assert.deepEqual(times, [0, 10, 20, 30, 40].slice(0, tries));
    }
  });
});
