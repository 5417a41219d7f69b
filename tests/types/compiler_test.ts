/**
 * What the compiler refuses, and what it says: each program is compiled on its own.
 * @module
 */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { runDeno } from "../../scripts/lib/process.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const isDeno = "Deno" in globalThis;

const PRELUDE = `
import { type KubernetesObject, newCluster, resourceOf, SharedIndexInformer } from "@listwatch/cache";
interface Pod extends KubernetesObject {
  readonly spec?: { readonly nodeName?: string; readonly volumes?: readonly { readonly name: string }[] };
  readonly status?: { readonly phase?: string };
}
const cluster = newCluster({ server: "http://127.0.0.1:8001" });
const pods = cluster.resource<Pod>("v1/pods");
export function use(...values: unknown[]): void {
  console.log(values, cluster, pods, resourceOf, SharedIndexInformer);
}
`;

interface Program {
  readonly title: string;
  readonly code: string;
  /** What the compiler says, each in one error, in order; nothing where the program compiles. */
  readonly errors: readonly RegExp[];
}

const PROGRAMS: readonly Program[] = [
  {
    title: "resource<T> refuses `keep`, as its type cannot follow it, and says to use resourceOf",
    code: `cluster.resource<Pod>("v1/pods", { keep: ["metadata.labels", "status"] });`,
    errors: [/not assignable to[^]*Advice<"write resource\(resourceOf<T>\(name\), \{ keep \}\)/],
  },
  {
    title: "resource<T> refuses a `drop` beside metadata",
    code: `cluster.resource<Pod>("v1/pods", { drop: ["spec.volumes"] });`,
    errors: [/Type '"spec.volumes"' is not assignable to type '`metadata\.\$\{string\}`'/],
  },
  {
    title: "resource<T> accepts a `drop` of metadata, and to keep everything",
    code: `cluster.resource<Pod>("v1/pods", { keep: "everything" });
           cluster.resource<Pod>("v1/pods", { drop: ["metadata.annotations"] });`,
    errors: [],
  },
  {
    title: "resource accepts any `keep` and `drop` where objects have no type of their own",
    code: `cluster.resource("v1/pods", { keep: ["spec.nodeName"], drop: ["spec.volumes"] });`,
    errors: [],
  },
  {
    title: "resource with resourceOf<T> keeps the name of the type where there are no options",
    code: `const got: number = cluster.resource(resourceOf<Pod>("v1/pods"));`,
    errors: [/Type 'ResourceClient<Pod>' is not assignable to type 'number'/],
  },
  {
    title: "resource with resourceOf<T> types away what `keep` and `drop` remove",
    code:
      `const kept = await cluster.resource(resourceOf<Pod>("v1/pods"), { keep: ["spec.nodeName"] }).get("web-1");
           use(kept.spec?.nodeName, kept.metadata?.labels);
           use(kept.spec?.volumes);
           const lean = await cluster.resource(resourceOf<Pod>("v1/pods"), { drop: ["status"] }).get("web-1");
           use(lean.spec?.volumes);
           use(lean.status);`,
    errors: [/Property 'volumes' does not exist/, /Property 'status' does not exist/],
  },
  {
    title: "resource with resourceOf<T> refuses a typo in a path of `keep` and `drop`",
    code: `cluster.resource(resourceOf<Pod>("v1/pods"), { keep: ["spec.nodename"] });
           cluster.resource(resourceOf<Pod>("v1/pods"), { drop: ["spec.volumes.name"] });
           cluster.resource(resourceOf<Pod>("v1/pods"), { drop: ["stats"] });`,
    errors: [
      /keep and drop may name only fields that it has/,
      /keep and drop may name only fields that it has/,
      /keep and drop may name only fields that it has/,
    ],
  },
  {
    title: "FieldPath shows what could be written in place of a typo",
    code: `import type { FieldPath } from "@listwatch/cache/client";
           const key: FieldPath<Pod, "spec.nodename"> = "spec.nodename";
           const element: FieldPath<Pod, "spec.volumes.name"> = "spec.volumes.name";
           use(key, element);`,
    errors: [
      /Did you mean '"spec\.nodeName"'/,
      /spec\.volumes\. has no fields; write \[\]/,
    ],
  },
  {
    title: "fieldIndex refuses a typo in its path, and shows what could be written in its place",
    code: `import { fieldIndex } from "@listwatch/cache";
           new SharedIndexInformer(pods, { indexers: { byNode: fieldIndex("spec.nodename") } });
           new SharedIndexInformer(pods, { indexers: { byVolume: fieldIndex("spec.volumes.name") } });
           new SharedIndexInformer(pods, { indexers: { byFinalizer: fieldIndex("metadata.finalisers[]") } });`,
    errors: [
      /'"spec\.nodename"' is not assignable to .*"spec\.nodeName"/,
      /spec\.volumes\. has no fields; write \[\]/,
      /'"metadata\.finalisers\[\]"' is not assignable to .*"metadata\.finalizers\[\]"/,
    ],
  },
  {
    title:
      "fieldIndex accepts elements, quoted keys, paths of run time, and any field of objects of any kind",
    code: `import { fieldIndex, ownerIndex } from "@listwatch/cache";
           const path: string = "spec.nodeName";
           const informer = new SharedIndexInformer(pods, {
             indexers: {
               byNode: fieldIndex("spec.nodeName"),
               byVolume: fieldIndex("spec.volumes[].name"),
               byFinalizer: fieldIndex("metadata.finalizers[]"),
               byTeam: fieldIndex('metadata.annotations["example.com/team"]'),
               byPath: fieldIndex(path),
               byOwner: ownerIndex(),
             },
           });
           use(informer.indexer.byIndex("byOwner", "u-1")[0]?.spec?.nodeName);
           new SharedIndexInformer(cluster.resource("v1/pods"), { indexers: { byNode: fieldIndex("spec.nodeName") } });`,
    errors: [],
  },
  {
    title: "resource with resourceOf<T> accepts elements, quoted keys and paths of run time",
    code: `const paths: string[] = ["status"];
           use(
             cluster.resource(resourceOf<Pod>("v1/pods"), { drop: ["metadata.managedFields", "spec.volumes[].name"] }),
             cluster.resource(resourceOf<Pod>("v1/pods"), { keep: ['metadata.labels["example.com/x.y"]'] }),
             cluster.resource(resourceOf<Pod>("v1/pods"), { drop: paths }),
           );`,
    errors: [],
  },
  {
    title: "resource, resourceOf and forResource refuse a kind, and a resource without its version",
    code: `import { SharedInformerFactory } from "@listwatch/cache";
           cluster.resource("v1/Pod");
           cluster.resource<Pod>("v1/Pod");
           resourceOf<Pod>("v1/Pod");
           new SharedInformerFactory(cluster).forResource("apps/v1/Deployment");
           cluster.resource("pods");`,
    errors: [
      /'"v1\/Pod"' is not assignable/,
      /'"v1\/Pod"' is not assignable/,
      /'"v1\/Pod"' is not assignable/,
      /'"apps\/v1\/Deployment"' is not assignable/,
      /'"pods"' is not assignable/,
    ],
  },
  {
    title: "resource takes a text of run time through parseResource",
    code: `import { parseResource } from "@listwatch/cache";
           const text: string = "v1/pods";
           cluster.resource<Pod>(parseResource(text));`,
    errors: [],
  },
  {
    title:
      "synced must be called: awaiting the method of an informer, a handler, a factory or a queue is refused",
    code: `import { SharedInformerFactory } from "@listwatch/cache";
           import { RealFIFO } from "@listwatch/cache/queue";
           const informer = new SharedIndexInformer(pods);
           const queue = new RealFIFO<Pod>({ atomicEvents: true });
           await Promise.all([informer.synced(), queue.synced(AbortSignal.timeout(1))]);
           await informer.synced;
           await informer.addEventHandler({}).synced;
           await new SharedInformerFactory(cluster).synced;
           await queue.synced;`,
    errors: [
      /Type of 'await' operand/,
      /Type of 'await' operand/,
      /Type of 'await' operand/,
      /Type of 'await' operand/,
    ],
  },
  {
    title: "SharedIndexInformer infers the names of its indices, and refuses others",
    code:
      `const informer = new SharedIndexInformer(pods, { indexers: { byNode: (pod) => [pod.spec?.nodeName ?? ""] } });
           use(informer.indexer.byIndex("byNode", "node-1"), informer.indexer.byIndices({ byNode: "node-1" }));
           informer.indexer.byIndex("byNod", "node-1");`,
    errors: [/Argument of type '"byNod"' is not assignable to parameter of type '"byNode"'/],
  },
  {
    title: "SharedIndexInformer without indexers refuses every index name, and says to name one",
    code: `new SharedIndexInformer(pods).indexer.byIndex("byNode", "node-1");
           new SharedIndexInformer<Pod>(pods, { name: "pods" }).indexer.countByIndex("byNode", "node-1");`,
    errors: [/name an index in `indexers`/, /name an index in `indexers`/],
  },
  {
    title: "SharedIndexInformer<T> types the objects of index functions, and says how to name the indices",
    code:
      `new SharedIndexInformer<Pod>(pods, { indexers: { byNode: (pod) => [pod.spec?.nodeName ?? ""] } });`,
    errors: [/Type '\(pod: Pod\) => string\[\]' is not assignable[^]*leave out <T>, which the source gives/],
  },
  {
    title: "SharedIndexInformer<T, names> accepts these names",
    code: `const informer = new SharedIndexInformer<Pod, "byNode">(pods, {
             indexers: { byNode: (pod) => [pod.spec?.nodeName ?? ""] },
           });
           use(informer.indexer.byIndex("byNode", "node-1"));`,
    errors: [],
  },
  {
    title: "SharedIndexInformer.addIndexers adds to the names, with and without indexers before",
    code:
      `const none = new SharedIndexInformer(pods).addIndexers({ byPhase: (pod) => [pod.status?.phase ?? ""] });
           use(none.indexer.byIndex("byPhase", "Running"));
           none.indexer.byIndex("byNode", "node-1");`,
    errors: [/Argument of type '"byNode"' is not assignable[^]*"byPhase"/],
  },
  {
    title: "newInformer and MutationCache refuse index names that do not exist, and say what to do",
    code: `import { MutationCache } from "@listwatch/cache/compat";
           import { newInformer } from "@listwatch/cache/informer";
           const indexers = { byNode: (pod: Pod) => [pod.spec?.nodeName ?? ""] };
           const [store] = newInformer({ listerWatcher: pods, handler: {}, indexers });
           use(store.byIndex("byNode", "node-1"));
           const [plain] = newInformer({ listerWatcher: pods, handler: {} });
           plain.byIndex("byNode", "node-1");
           const informer = new SharedIndexInformer(pods, { indexers });
           const cache = new MutationCache(informer.indexer, { indexer: informer.indexer });
           use(cache.byIndex("byNode", "node-1"));
           new MutationCache<Pod>(informer.indexer).byIndex("byNode", "node-1");`,
    errors: [/name an index in `indexers`/, /give `indexer` in the options, and no type arguments/],
  },
  {
    title: "resource with a schema types away what `keep` removes, and refuses typos and an explicit <T>",
    code: `import type { Schema } from "@listwatch/cache/client";
           declare const schema: Schema<Pod>;
           const kept = await cluster.resource("v1/pods", { schema, keep: ["spec.nodeName"] }).get("web-1");
           use(kept.spec?.nodeName);
           use(kept.spec?.volumes);
           cluster.resource("v1/pods", { schema, keep: ["spec.node"] });
           cluster.resource<Pod>("v1/pods", { schema, keep: ["spec.nodeName"] });`,
    errors: [/Property 'volumes' does not exist/, /not assignable/, /not assignable/],
  },
  {
    title: "SharedIndexInformer.addEventHandler accepts a handler whatever it returns",
    code: `const names: (string | undefined)[] = [];
      new SharedIndexInformer(pods).addEventHandler({
        onAdd: (pod) => names.push(pod.metadata?.name),
        onUpdate: async (_old, pod) => await Promise.resolve(pod.metadata?.name),
        onDelete: (deleted) => console.log(deleted.key),
      });`,
    errors: [],
  },
  {
    title: "SharedIndexInformer.addEventHandler types the objects that a handler receives",
    code: `import { type HandlerOptions } from "@listwatch/cache";
      const informer = new SharedIndexInformer(pods);
      const options: HandlerOptions = { name: "objects" };
      informer.addEventHandler({ onUpdate: (old, pod) => use(old.spec, pod.spec?.nodeName) });
      informer.addEventHandler({ onDelete: ({ object }) => use(object?.spec) }, { resyncPeriodMs: 1_000 });
      informer.addEventHandler({ onAdd: (pod) => use(pod.spec) }, options);
      const anyObject = { onAdd: (object: KubernetesObject) => use(object.metadata?.name) };
      informer.addEventHandler(anyObject);
      informer.addEventHandler({ onAdd: (pod) => use(pod.key) });
      informer.addEventHandler({ onAdd: (pod) => use(pod) }, { receives: "heads" });`,
    errors: [/Property 'key' does not exist on type 'Pod'/, /'receives' does not exist in type/],
  },
  {
    title: "SharedIndexInformer refuses what the informer itself gives its reflector",
    code: `new SharedIndexInformer(pods, { reflector: { knownObjects: undefined } });
           new SharedIndexInformer(pods, { reflector: { intake: undefined } });
           new SharedIndexInformer(pods, { reflector: { neverGoesBack: true } });
           new SharedIndexInformer(pods, { reflector: { keyFunc: () => "" } });
           new SharedIndexInformer(pods, { reflector: { resyncPeriodMs: 1_000 } });
           new SharedIndexInformer(pods, { reflector: { shouldResync: () => true } });`,
    errors: [
      /'knownObjects' does not exist/,
      /'intake' does not exist/,
      /'neverGoesBack' does not exist/,
      /'keyFunc' does not exist/,
      /'resyncPeriodMs' does not exist/,
      /'shouldResync' does not exist/,
    ],
  },
  {
    title: "Reflector and newInformer refuse what only an informer gives a reflector",
    code: `import { Reflector } from "@listwatch/cache/reflector";
           import { metaNamespaceKey } from "@listwatch/cache";
           import { newInformer } from "@listwatch/cache/informer";
           import { newStore } from "@listwatch/cache/store";
           const store = newStore<Pod>(metaNamespaceKey);
           new Reflector(pods, store, { knownObjects: store });
           new Reflector(pods, store, { intake: undefined });
           newInformer({ listerWatcher: pods, handler: {}, reflector: { knownObjects: store } });`,
    errors: [/'knownObjects' does not exist/, /'intake' does not exist/, /'knownObjects' does not exist/],
  },
  {
    title: "synced is a method everywhere: to await it without calling it does not compile",
    code: `import { SharedInformerFactory } from "@listwatch/cache";
           const informer = new SharedIndexInformer(pods);
           await informer.synced();
           await informer.addEventHandler({}).synced();
           await new SharedInformerFactory(cluster).synced();
           await informer.synced;
           await informer.addEventHandler({}).synced;
           await new SharedInformerFactory(cluster).synced;`,
    errors: [/'await' operand must/, /'await' operand must/, /'await' operand must/],
  },
  {
    title: "HeapItemNotFoundError is the error of a heap, isNotFound is about the API server",
    code: `import { isNotFound } from "@listwatch/cache";
           import * as compat from "@listwatch/cache/compat";
           use(isNotFound, compat.HeapItemNotFoundError);
           use(compat.NotFoundError);`,
    errors: [/Property 'NotFoundError' does not exist/],
  },
  {
    title: "K8s of ./compat/fluent accepts a program of kubernetes-fluent-client's, with its imports changed",
    code: `import type { EventEmitter } from "node:events";
           import { GenericKind, kind, type WatchCfg, WatchEvent } from "kubernetes-fluent-client";
           import { K8s, RegisterKind, WatchPhase } from "@listwatch/cache/compat/fluent";
           class Widget extends GenericKind {
             declare spec?: { size?: number };
           }
           RegisterKind(Widget, { group: "example.com", version: "v1", kind: "Widget", plural: "widgets" });
           const handle = async (pod: kind.Pod, phase: WatchPhase): Promise<void> => {
             switch (phase) {
               case WatchPhase.Added:
               case WatchPhase.Modified:
               case WatchPhase.Deleted:
                 return use(await pod.metadata?.name);
               case WatchPhase.Bookmark:
               case WatchPhase.Error:
             }
           };
           const cfg: WatchCfg = { resyncFailureMax: 5, resyncDelaySec: 5, relistIntervalSec: 600, lastSeenLimitSeconds: 300 };
           const watcher = K8s<typeof kind.Pod, kind.Pod>(kind.Pod)
             .InNamespace("shop").WithLabel("app").WithField("spec.nodeName", "node-1").Watch(handle, cfg);
           const events: EventEmitter = watcher.events;
           events.on(WatchEvent.DATA, (pod: kind.Pod, phase: WatchPhase) => use(pod, phase));
           watcher.events.once(WatchEvent.GIVE_UP, (error: Error) => use(error.message));
           const controller: AbortController = await watcher.start();
           controller.abort();
           watcher.close();
           K8s(Widget, { kindOverride: { kind: "Widget", group: "example.com", version: "v1" }, labels: { app: "web" } })
             .Watch((widget) => use(widget.spec?.size, widget.status.any));`,
    errors: [],
  },
];

describe("newCluster, SharedIndexInformer and the parts, under `deno check`", { skip: !isDeno }, () => {
  if (!isDeno) return;
  const dir = mkdtempSync(join(tmpdir(), "listwatch-types-"));
  let said: readonly (readonly string[])[] = [];

  before(async () => {
    const files = PROGRAMS.map(({ code }, at) => {
      const file = join(dir, `program_${at}.ts`);
      writeFileSync(file, `${PRELUDE}\n${code}\n`);
      return file;
    });
    const { output } = await runDeno(["check", "--config", join(root, "deno.json"), ...files], { cwd: root });
    said = files.map((_, at) => errorsOf(output, `program_${at}.ts`));
  });
  after(() => rmSync(dir, { recursive: true }));

  for (const [at, { title, errors }] of PROGRAMS.entries()) {
    it(title, () => {
      assert.equal(said[at].length, errors.length, said[at].join("\n"));
      for (const [which, error] of errors.entries()) assert.match(said[at][which], error);
    });
  }
});

/** The errors that `deno check` reports for a file, each with the lines up to its place. */
function errorsOf(output: string, file: string): string[] {
  return output.split(/^(?=TS\d+ \[ERROR\])/m).filter((error) => {
    const place = /^ {4}at (\S+):\d+:\d+$/m.exec(error);
    return error.startsWith("TS") && place !== null && place[1].endsWith(`/${file}`);
  });
}
