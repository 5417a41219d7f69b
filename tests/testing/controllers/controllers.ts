/**
 * Controllers for the simulation: correct ones, and twelve with a fault of one of the three patterns that
 * Sieve found in ten controllers (https://www.usenix.org/conference/osdi22/presentation/sun): a crash in the
 * middle, states that were not observed, and an API server that shows the past.
 */

import type { Cluster, KubernetesObject } from "@listwatch/cache";
import { type ControllerDefinition, defineController, ownedBy } from "@listwatch/cache/controller";
import type { Act, Check, SimulationOptions } from "@listwatch/cache/testing";
import { type Widget as ExampleWidget, widgetController } from "../../../examples/widget_controller.ts";
import { WIDGETS } from "../../widgets.ts";

const CONFIG_MAPS = "v1/configmaps";
const SECRETS = "v1/secrets";

type Widget = ExampleWidget & { status?: { port?: number; bucket?: string } };
type ConfigMap = KubernetesObject & { data?: Record<string, string> };
type Memory = Map<string, unknown>;

/** A controller and what is expected of it. */
export interface Subject {
  readonly name: string;
  readonly define: (cluster: Cluster, memory: Memory) => ControllerDefinition | ControllerDefinition[];
  readonly expected: Pick<SimulationOptions, "act" | "eventually" | "never">;
}

const COLORS = ["red", "green", "blue"];

/** What users do with Widgets. */
const widgetActs: Record<string, Act> = {
  create(server, { pick, memory }) {
    const name = pick(["a", "b", "c", "d"])!;
    const color = pick(COLORS)!;
    server.create<Widget>(WIDGETS, { metadata: { name }, spec: { color } });
    memory.set(`color of ${name}`, color);
  },
  recolor(server, { pick, memory }) {
    const widget = pick(server.list<Widget>(WIDGETS).items);
    if (widget === undefined) return;
    const color = pick(COLORS)!;
    server.patch(WIDGETS, widget, { spec: { color } });
    memory.set(`color of ${nameOf(widget)}`, color);
  },
  delete(server, { pick }) {
    const widget = pick(server.list<Widget>(WIDGETS).items);
    if (widget !== undefined) server.delete(WIDGETS, widget);
  },
};

/** Users who rather create than delete. */
const growingActs: Record<string, Act> = { ...widgetActs, "create another": widgetActs.create };

/** A user goes from green to blue by way of red. */
const throughRed: Act = (server, { pick }) => {
  const widget = pick(server.list<Widget>(WIDGETS).items);
  if (widget === undefined) return;
  server.patch(WIDGETS, widget, { spec: { color: "red" } });
  server.patch(WIDGETS, widget, { spec: { color: pick(["green", "blue"]) } });
};

const nameOf = ({ metadata }: KubernetesObject): string => metadata?.name ?? "";
const uidOf = ({ metadata }: KubernetesObject): string => metadata?.uid ?? "";
const ownerUid = ({ metadata }: KubernetesObject): string => metadata?.ownerReferences?.[0].uid ?? "";

/** What is outside of the cluster: a service with buckets, each with the uid of its Widget. */
const bucketsOf = (memory: Memory): Map<string, string> => {
  if (!memory.has("buckets")) memory.set("buckets", new Map());
  return memory.get("buckets") as Map<string, string>;
};

const eachHasItsMap: Check = (server) => {
  const widgets = server.list<Widget>(WIDGETS).items;
  const maps = server.list<ConfigMap>(CONFIG_MAPS).items;
  return maps.length === widgets.length &&
    widgets.every((widget) =>
      maps.some((map) => ownerUid(map) === uidOf(widget) && map.data?.color === widget.spec?.color)
    );
};

const eachHasOneSecret: Check = (server) => {
  const owners = server.list(SECRETS).items.map(ownerUid).sort();
  const widgets = server.list(WIDGETS).items.map(uidOf).sort();
  return owners.join() === widgets.join();
};

const eachHasOneBucket: Check = (server, memory) => {
  const owners = [...bucketsOf(memory).values()].sort();
  return owners.join() === server.list(WIDGETS).items.map(uidOf).sort().join();
};

const samePort: Check = (server) => {
  const ports = server.list<Widget>(WIDGETS).items.map(({ status }) => status?.port).filter(Boolean);
  return new Set(ports).size < ports.length;
};

const asUsersSaid: Check = (server, memory) =>
  server.list<Widget>(WIDGETS).items.every((widget) =>
    widget.spec?.color === memory.get(`color of ${nameOf(widget)}`)
  );

const withMaps = { act: widgetActs, eventually: { "each Widget has its ConfigMap": eachHasItsMap } };
const withSecrets = { act: widgetActs, eventually: { "each Widget has one Secret": eachHasOneSecret } };
const withBuckets = { act: widgetActs, eventually: { "each Widget has one bucket": eachHasOneBucket } };
const withPorts = {
  act: widgetActs,
  never: { "two Widgets with one port": samePort },
  eventually: {
    "each has a port": (server) => server.list<Widget>(WIDGETS).items.every(({ status }) => status?.port),
  },
} satisfies Subject["expected"];

const base = (cluster: Cluster) => ({
  name: "widgets",
  for: cluster.resource<Widget>(WIDGETS),
  owns: { configMaps: cluster.resource<ConfigMap>(CONFIG_MAPS), secrets: cluster.resource(SECRETS) },
});

const mapOf = (widget: Widget): ConfigMap => ({
  metadata: { name: `widget-${nameOf(widget)}`, ...ownedBy(widget) },
  data: { color: widget.spec?.color ?? "" },
});

const secretOf = (widget: Widget): KubernetesObject => ({
  metadata: { generateName: `${nameOf(widget)}-`, ...ownedBy(widget) },
});

const freePort = (used: ReadonlySet<number | undefined>): number => {
  for (let port = 1;; port++) if (!used.has(port)) return port;
};

/** Controllers without faults. */
export const CORRECT: readonly Subject[] = [
  { name: "the example", define: widgetController, expected: withMaps },
  {
    name: "one Secret each, of a name that the server chooses",
    define: (cluster) =>
      defineController({
        ...base(cluster),
        workers: 2,
        async reconcile(widget, { secrets, self }) {
          if ((await secrets.owned()).length > 0) return;
          await secrets.create(secretOf(widget));
          await self.patch(nameOf(widget), { metadata: { annotations: { token: "made" } } });
        },
      }),
    expected: withSecrets,
  },
  {
    name: "a bucket each, outside of the cluster",
    define: (cluster, memory) =>
      defineController({
        ...base(cluster),
        finalizer: "example.com/bucket",
        finalize: (widget) => void bucketsOf(memory).delete(uidOf(widget)),
        reconcile(widget) {
          bucketsOf(memory).set(uidOf(widget), uidOf(widget));
          return { status: { bucket: uidOf(widget) } };
        },
      }),
    expected: withBuckets,
  },
  {
    name: "a port each, that no other has",
    define: (cluster) => {
      // The cache may not have yet what another key has written.
      const given = new Set<number>();
      return defineController({
        ...base(cluster),
        async reconcile(widget, { self }) {
          if (widget.status?.port) return;
          const port = freePort(
            new Set([...given, ...(await self.list()).map(({ status }) => status?.port)]),
          );
          given.add(port);
          return { status: { port } };
        },
      });
    },
    expected: withPorts,
  },
];

/** Controllers with one fault each. */
export const FAULTY: readonly Subject[] = [
  // A crash in the middle.
  {
    name: "crash: it says that the Secret is made before it makes it",
    define: (cluster) =>
      defineController({
        ...base(cluster),
        async reconcile(widget, { secrets, self }) {
          if (widget.metadata?.annotations?.token) return;
          await self.patch(nameOf(widget), { metadata: { annotations: { token: "made" } } });
          await secrets.create(secretOf(widget));
        },
      }),
    expected: withSecrets,
  },
  {
    name: "crash: it removes its finalizer before the bucket",
    define: (cluster, memory) =>
      defineController({
        ...base(cluster),
        finalizer: "example.com/bucket",
        async finalize(widget, { self }) {
          await self.patch(nameOf(widget), { metadata: { finalizers: null } });
          bucketsOf(memory).delete(uidOf(widget));
          return { requeueAfterMs: 60_000 };
        },
        reconcile: (widget) => void bucketsOf(memory).set(uidOf(widget), uidOf(widget)),
      }),
    expected: withBuckets,
  },
  {
    name: "crash: it remembers the ConfigMap of the last color, to delete it, in the process",
    define: (cluster) => {
      const last = new Map<string, string>();
      return defineController({
        ...base(cluster),
        async reconcile(widget, { configMaps }) {
          const name = `widget-${nameOf(widget)}-${widget.spec?.color}`;
          const before = last.get(uidOf(widget));
          if (before !== undefined && before !== name) await configMaps.deleteIfExists(before);
          await configMaps.apply({ ...mapOf(widget), metadata: { name, ...ownedBy(widget) } });
          last.set(uidOf(widget), name);
        },
      });
    },
    expected: withMaps,
  },
  {
    name: "crash: it makes a bucket of a new name, and writes the name down afterwards",
    define: (cluster, memory) =>
      defineController({
        ...base(cluster),
        finalizer: "example.com/bucket",
        finalize: (widget) => void bucketsOf(memory).delete(widget.status?.bucket ?? ""),
        reconcile(widget) {
          if (widget.status?.bucket) return;
          const bucket = `bucket-${memory.size + bucketsOf(memory).size}-${Math.random()}`;
          bucketsOf(memory).set(bucket, uidOf(widget));
          return { status: { bucket } };
        },
      }),
    expected: withBuckets,
  },
  // States that were not observed.
  {
    name: "unobserved: it takes the generation of a name for its state, also when the object is another one",
    define: (cluster) => {
      const done = new Map<string, number>();
      return defineController({
        ...base(cluster),
        async reconcile(widget, { configMaps }) {
          const { generation = 0 } = widget.metadata ?? {};
          const maps = await configMaps.list();
          if (done.get(nameOf(widget)) === generation && maps.length > 0) return;
          await configMaps.apply(mapOf(widget));
          done.set(nameOf(widget), generation);
        },
      });
    },
    expected: withMaps,
  },
  {
    name: "unobserved: it is content with a ConfigMap of the right name, of a Widget that was deleted",
    define: (cluster) =>
      defineController({
        ...base(cluster),
        async reconcile(widget, { configMaps }) {
          const present = await configMaps.get(`widget-${nameOf(widget)}`);
          if (present?.data?.color !== widget.spec?.color) await configMaps.apply(mapOf(widget));
        },
      }),
    expected: withMaps,
  },
  {
    name: "unobserved: it cleans up only if it has seen the object being deleted",
    define: (cluster, memory) => {
      const seen = new Map<string, string>();
      const widgets = cluster.resource<Widget>(WIDGETS);
      return defineController({
        ...base(cluster),
        watches: {
          all: {
            resource: widgets,
            keys(widget, { self }) {
              const uid = seen.get(nameOf(widget));
              const now = self.get(widget);
              if (uid !== undefined && now === undefined) bucketsOf(memory).delete(uid);
              return [];
            },
          },
        },
        reconcile(widget) {
          seen.set(nameOf(widget), uidOf(widget));
          bucketsOf(memory).set(uidOf(widget), uidOf(widget));
          return { status: { bucket: uidOf(widget) } };
        },
      });
    },
    expected: withBuckets,
  },
  {
    name: "unobserved: it looks only at changes that begin with red",
    define: (cluster) =>
      defineController({
        ...base(cluster),
        when: (before, after) => before.spec?.color === "red" || after.spec?.color === "red",
        async reconcile(widget, { configMaps, secrets }) {
          await configMaps.apply(mapOf(widget));
          await secrets.list();
        },
      }),
    expected: {
      ...withMaps,
      act: {
        ...widgetActs,
        recolor: throughRed,
        "recolor again": throughRed,
      },
    },
  },
  // The past.
  {
    name: "time travel: it gives out ports by what an API server's cache shows at the start",
    define: (cluster) => {
      const widgets = cluster.resource<Widget>(WIDGETS);
      let used: Set<number | undefined> | undefined;
      return defineController({
        ...base(cluster),
        async reconcile(widget) {
          if (widget.status?.port) return;
          used ??= new Set(
            (await widgets.list({ resourceVersion: "0" })).items.map((one) => one.status?.port),
          );
          const port = freePort(used);
          used.add(port);
          return { status: { port } };
        },
      });
    },
    expected: { act: widgetActs, never: withPorts.never },
  },
  {
    name: "time travel: it deletes buckets that have no Widget in an API server's cache",
    define: (cluster, memory) => {
      const widgets = cluster.resource<Widget>(WIDGETS);
      let isClean = false;
      return defineController({
        ...base(cluster),
        finalizer: "example.com/bucket",
        finalize: (widget) => void bucketsOf(memory).delete(uidOf(widget)),
        async reconcile(widget) {
          if (!widget.status?.bucket) bucketsOf(memory).set(uidOf(widget), uidOf(widget));
          if (!isClean) {
            const { items } = await widgets.list({ resourceVersion: "0" });
            const alive = new Set([...items, widget].map(uidOf));
            for (const [bucket, uid] of bucketsOf(memory)) {
              if (!alive.has(uid)) bucketsOf(memory).delete(bucket);
            }
            isClean = true;
          }
          return { status: { bucket: uidOf(widget) } };
        },
      });
    },
    expected: { ...withBuckets, act: growingActs },
  },
  {
    name: "time travel: it writes back the whole spec that it has read",
    define: (cluster) =>
      defineController({
        ...base(cluster),
        async reconcile(widget, { self, configMaps }) {
          await configMaps.apply(mapOf(widget));
          if (widget.spec?.size === undefined) {
            await self.patch(nameOf(widget), { spec: { ...widget.spec, size: 1 } });
          }
        },
      }),
    expected: { act: widgetActs, eventually: { "the colors are what users said": asUsersSaid } },
  },
  {
    name: "time travel: it deletes the ConfigMap of a Widget that another cache does not have yet",
    define: (cluster, memory) => {
      const widgets = cluster.resource<Widget>(WIDGETS);
      return defineController({
        name: "orphans",
        for: cluster.resource<ConfigMap>(CONFIG_MAPS),
        watches: {
          widgets: { resource: widgets, keys: ({ metadata }) => [`default/widget-${metadata?.name}`] },
        },
        async reconcile(map, { self }) {
          const { items } = await widgets.list({ resourceVersion: "0" });
          const owner = items.find((widget) => `widget-${nameOf(widget)}` === nameOf(map));
          if (owner !== undefined) return;
          const lives = [...memory.keys()].includes(`living ${nameOf(map)}`);
          if (await self.deleteIfExists(nameOf(map)) && lives) {
            memory.set("a ConfigMap in use was deleted", true);
          }
        },
      });
    },
    expected: {
      act: {
        create(server, { pick, memory }) {
          const name = pick(["a", "b", "c", "d"])!;
          server.create<Widget>(WIDGETS, { metadata: { name } });
          memory.set(`living widget-${name}`, true);
          server.create(CONFIG_MAPS, { metadata: { name: `widget-${name}` } });
        },
        delete(server, { pick, memory }) {
          const widget = pick(server.list<Widget>(WIDGETS).items);
          if (widget === undefined) return;
          memory.delete(`living widget-${nameOf(widget)}`);
          server.delete(WIDGETS, widget);
        },
      },
      never: { "a ConfigMap in use is deleted": (_, memory) => memory.has("a ConfigMap in use was deleted") },
    },
  },
];
