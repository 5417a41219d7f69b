// What @kubernetes/client-node promises of its informer, in front of a server: the cases of its cache_test.ts that can be made
// with one (there, its watch is a mock), by their names, and its integration test informerReconnect. The argument is the path of a
// kubeconfig. It prints what `go test -v` prints, and runs in the folder that has the package.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import process from "node:process";

const { CoreV1Api, KubeConfig, ListWatch, Watch } = createRequire(resolve("package.json"))(
  "@kubernetes/client-node",
);
const config = new KubeConfig();
config.loadFromFile(process.argv[2]);
const api = config.makeApiClient(CoreV1Api);
const LIMIT_MS = 20_000;
// The package ends a watch that was silent for 30 s, and resumes it.
const RECONNECT_MS = 45_000;

const cases = {
  "should perform basic caching": async ({ namespace, informer }) => {
    await create(namespace, "one");
    await create(namespace, "two");
    const cache = await informer();
    assert.deepEqual(names(cache.list()), ["one", "two"]);
    assert.equal(cache.get("one", namespace).metadata.name, "one");
    assert.deepEqual(names(cache.list(namespace)), ["one", "two"]);
    assert.deepEqual(cache.list("no-such-namespace"), []);
    await create(namespace, "three");
    await until(() => cache.get("three", namespace) !== undefined);
    const { metadata } = await change(namespace, "three", "2");
    await until(() => cache.get("three", namespace).metadata.resourceVersion === metadata.resourceVersion);
    await remove(namespace, "two");
    await until(() => cache.get("two", namespace) === undefined);
    assert.deepEqual(names(cache.list()), ["one", "three"]);
  },
  "should perform work as an informer": async ({ namespace, informer }) => {
    await create(namespace, "old");
    const cache = await informer();
    const seen = record(cache);
    const added = await create(namespace, "new");
    const updated = await change(namespace, "new", "2");
    await remove(namespace, "old");
    await until(() => seen.add.length > 0 && seen.update.length > 0 && seen.delete.length > 0);
    assert.deepEqual(versions(seen.add), [added.metadata.resourceVersion]);
    assert.deepEqual(versions(seen.update), [updated.metadata.resourceVersion]);
    assert.deepEqual(names(seen.delete), ["old"]);
  },
  "should handle change events correctly": async ({ namespace, informer }) => {
    await create(namespace, "old");
    const cache = await informer();
    const changes = [];
    cache.on("change", (object) => changes.push(object.metadata.name));
    await create(namespace, "new");
    await change(namespace, "new", "2");
    await remove(namespace, "old");
    await until(() => changes.length === 3);
    assert.deepEqual(changes, ["new", "new", "old"]);
  },
  "should perform work as an informer with multiple handlers": async ({ namespace, informer }) => {
    const cache = await informer();
    const [first, second] = [record(cache), record(cache)];
    await create(namespace, "one");
    await until(() => first.add.length + second.add.length === 2);
    assert.deepEqual([names(first.add), names(second.add)], [["one"], ["one"]]);
  },
  "should perform work as an informer with initial list": async ({ namespace, informer }) => {
    await create(namespace, "one");
    await create(namespace, "two");
    const cache = await informer({ isStarted: false });
    const seen = record(cache);
    await cache.start();
    assert.deepEqual(names(seen.add), ["one", "two"]);
    await again(cache);
    await create(namespace, "three");
    await until(() => seen.add.length === 3);
    assert.deepEqual([names(seen.add), seen.update], [["one", "three", "two"], []]);
  },
  "should perform work as an informer with initial list and delete after": async (
    { namespace, informer },
  ) => {
    await create(namespace, "one");
    await create(namespace, "two");
    const cache = await informer({ isStarted: false });
    const seen = record(cache);
    await cache.start();
    await cache.stop();
    const updated = await change(namespace, "one", "2");
    await remove(namespace, "two");
    await cache.start();
    await until(() => seen.delete.length > 0);
    assert.deepEqual(names(seen.add), ["one", "two"]);
    assert.deepEqual(versions(seen.update), [updated.metadata.resourceVersion]);
    assert.deepEqual(names(seen.delete), ["two"]);
  },
  "should perform namespace caching": async ({ namespace, informer, label }) => {
    const other = await newNamespace();
    await create(namespace, "one", label);
    await create(other, "two", label);
    const cache = await informer({ everywhere: true });
    assert.deepEqual([names(cache.list(namespace)), names(cache.list(other))], [["one"], ["two"]]);
    await remove(other, "two");
    await until(() => cache.get("two", other) === undefined);
    assert.deepEqual([names(cache.list()), cache.list(other)], [["one"], []]);
  },
  "should not call handlers which have been unregistered": async ({ namespace, informer }) => {
    const cache = await informer();
    const [stays, leaves] = [[], []];
    const leaving = (object) => leaves.push(object);
    cache.on("add", (object) => stays.push(object));
    cache.on("add", leaving);
    await create(namespace, "one");
    await until(() => leaves.length === 1);
    cache.off("add", leaving);
    await create(namespace, "two");
    await until(() => stays.length === 2);
    assert.equal(leaves.length, 1);
  },
  "mutating handlers in a callback should not affect those which remain": async ({ namespace, informer }) => {
    const cache = await informer();
    const added = [];
    const once = () => cache.off("add", once);
    cache.on("add", once);
    cache.on("add", (object) => added.push(object));
    await create(namespace, "one");
    await until(() => added.length === 1);
  },
  "should resolve start promise after seeding the cache": async ({ namespace, informer }) => {
    await create(namespace, "one");
    const cache = await informer({ isStarted: false });
    const started = cache.start();
    assert.deepEqual(cache.list(), []);
    await started;
    assert.deepEqual(names(cache.list()), ["one"]);
  },
  "should only call update handlers once": async ({ namespace, informer }) => {
    await create(namespace, "one");
    const cache = await informer();
    const seen = record(cache);
    await change(namespace, "one", "2");
    await change(namespace, "one", "3");
    await create(namespace, "last");
    await until(() => seen.add.length === 1);
    assert.equal(seen.update.length, 2);
  },
  "should not auto-restart after explicitly stopping until restarted again": async (
    { namespace, informer },
  ) => {
    const cache = await informer();
    const seen = record(cache);
    await cache.stop();
    await create(namespace, "one");
    const witness = await informer();
    await until(() => witness.get("one", namespace) !== undefined);
    assert.deepEqual(seen.add, []);
    await cache.start();
    await until(() => seen.add.length === 1);
  },
  "does not auto-restart after an error": async ({ informer }) => {
    const cache = await informer({ isStarted: false, watchPath: "/api/v1/no-such-resource" });
    const errors = [];
    let connects = 0;
    cache.on("error", (error) => errors.push(error.statusCode));
    cache.on("connect", () => connects++);
    await cache.start();
    await until(() => errors.length > 0);
    assert.deepEqual([errors, connects], [[404], 1]);
  },
  "should send label selector": async ({ namespace, informer, label }) => {
    await create(namespace, "not-selected", {});
    const cache = await informer({ label });
    const seen = record(cache);
    await create(namespace, "neither", {});
    await create(namespace, "selected", label);
    await until(() => seen.add.length > 0);
    assert.deepEqual(names(cache.list()), ["selected"]);
  },
  "should list again where the version has expired": async ({ namespace, informer }) => {
    await create(namespace, "one");
    const cache = await informer();
    const seen = record(cache);
    await cache.stop();
    await remove(namespace, "one");
    await create(namespace, "two");
    cache.resourceVersion = "1";
    await cache.start();
    await until(() => seen.add.length > 0 && seen.delete.length > 0);
    assert.deepEqual(names(cache.list()), ["two"]);
  },
  informerReconnect: async ({ namespace, informer }) => {
    const cache = await informer({ isStarted: false });
    const seen = record(cache);
    const errors = [];
    let connects = 0;
    cache.on("error", (error) => errors.push(error));
    cache.on("connect", () => connects++);
    await cache.start();
    await create(namespace, "one");
    await until(() => seen.add.length === 1);
    await until(() => connects > 1, RECONNECT_MS);
    await create(namespace, "two");
    await until(() => seen.add.length === 2);
    assert.deepEqual([names(seen.add), seen.update, errors], [["one", "two"], [], []]);
  },
};

/** Runs a case in a namespace of its own, and prints what came of it. */
async function runCase(name, run) {
  const startedMs = performance.now();
  const informers = [];
  let failure;
  try {
    const namespace = await newNamespace();
    const label = { case: namespace };
    const informer = async ({ isStarted = true, everywhere = false, label: selected, watchPath } = {}) => {
      const labels = everywhere ? label : selected;
      const selector = labels && Object.entries(labels).map((pair) => pair.join("=")).join();
      const path = watchPath ?? `/api/v1/${everywhere ? "" : `namespaces/${namespace}/`}configmaps`;
      const list = everywhere
        ? () => api.listConfigMapForAllNamespaces({ labelSelector: selector })
        : () => api.listNamespacedConfigMap({ namespace, labelSelector: selector });
      const cache = new ListWatch(path, new Watch(config), list, false, selector);
      informers.push(cache);
      if (isStarted) await cache.start();
      return cache;
    };
    await run({ namespace, informer, label });
  } catch (error) {
    failure = error;
  }
  await Promise.all(informers.map((cache) => cache.stop()));
  const id = name.replaceAll(" ", "_");
  const text = failure === undefined
    ? ""
    : `    ${String(failure.stack ?? failure).replaceAll("\n", "\n    ")}\n`;
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(2);
  console.log(`=== NAME  ${id}\n${text}--- ${failure === undefined ? "PASS" : "FAIL"}: ${id} (${seconds}s)`);
}

async function newNamespace() {
  const { metadata } = await api.createNamespace({ body: { metadata: { generateName: "client-node-" } } });
  return metadata.name;
}

function create(namespace, name, labels = {}) {
  return api.createNamespacedConfigMap({
    namespace,
    body: { metadata: { name, labels }, data: { value: "1" } },
  });
}

async function change(namespace, name, value) {
  const object = await api.readNamespacedConfigMap({ namespace, name });
  return await api.replaceNamespacedConfigMap({ namespace, name, body: { ...object, data: { value } } });
}

function remove(namespace, name) {
  return api.deleteNamespacedConfigMap({ namespace, name });
}

/** What the informer's handlers receive from now on. */
function record(cache) {
  const seen = { add: [], update: [], delete: [] };
  for (const [event, objects] of Object.entries(seen)) cache.on(event, (object) => objects.push(object));
  return seen;
}

/** Its watch ends, and the next one resumes. */
async function again(cache) {
  await cache.stop();
  await cache.start();
}

const names = (objects) => objects.map(({ metadata }) => metadata.name).sort();
const versions = (objects) => objects.map(({ metadata }) => metadata.resourceVersion);

async function until(condition, limitMs = LIMIT_MS) {
  for (const endMs = performance.now() + limitMs; !condition();) {
    if (performance.now() > endMs) assert.fail(`not within ${limitMs} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// Beside each other: one of them waits for half a minute.
await Promise.all(Object.entries(cases).map(([name, run]) => runCase(name, run)));
process.exit(0);
