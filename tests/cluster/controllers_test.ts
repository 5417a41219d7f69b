import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
import { seededRandom } from "@listwatch/cache/testing";
import type { LineProcess } from "../../scripts/lib/line_process.ts";
import { type OwnConnection, skipWithoutOwnServer, startOwn } from "./connection.ts";
import { eventually, pause } from "./eventually.ts";
import { startProgram } from "./hosts/host.ts";
import { newSeed } from "./writers.ts";
import { widgetDefinition } from "../widgets.ts";

const LEASE = "widget-controller";
const COPIES = ["deno", "node", "bun"] as const;
const LEADER_KILLS = 20;
const SERVER_KILLS = 10;

type Widget = KubernetesObject & {
  readonly spec?: { readonly color?: string };
  readonly status?: { readonly message?: string; readonly ready?: boolean };
};
type ConfigMap = KubernetesObject & { readonly data?: Readonly<Record<string, string>> };
type Lease = KubernetesObject & { readonly spec?: { readonly holderIdentity?: string } };

const WIDGET = { apiVersion: "example.com/v1", kind: "Widget" };

const DEFINITION = widgetDefinition({ version: { subresources: { status: {} } } });

/** Copies of the program, each started again when it has ended. */
class Copies implements AsyncDisposable {
  readonly #options: { readonly kubeconfig: string };
  readonly #running = new Map<string, LineProcess>();
  /** All that ever ran. */
  readonly #started = new Map<string, LineProcess>();
  #isClosed = false;

  constructor(kubeconfig: string) {
    this.#options = { kubeconfig };
  }

  /** Resolves when the first one runs. */
  async start(runtime: (typeof COPIES)[number]): Promise<void> {
    void this.#supervise(runtime, await this.#launch(runtime, 1));
  }

  async #launch(runtime: (typeof COPIES)[number], number: number): Promise<LineProcess> {
    const identity = `${runtime}-${number}`;
    const options = { ...this.#options, identity, lease: LEASE };
    const copy = await startProgram(runtime, "controller", options, { errorLines: 100_000 });
    this.#running.set(identity, copy);
    this.#started.set(identity, copy);
    void copy.ended.finally(() => this.#running.delete(identity));
    if (this.#isClosed) copy.kill();
    return copy;
  }

  async #supervise(runtime: (typeof COPIES)[number], first: LineProcess): Promise<void> {
    let copy: LineProcess | undefined = first;
    for (let number = 2; !this.#isClosed; number++) {
      await copy?.ended;
      await pause(500); // as a kubelet would, which waits longer
      // The copy does not start while the API server is away.
      copy = this.#isClosed ? undefined : await this.#launch(runtime, number).catch(() => undefined);
    }
  }

  /** Kills a copy, if it runs. */
  kill(identity: string): boolean {
    const copy = this.#running.get(identity);
    copy?.kill();
    return copy !== undefined;
  }

  /** What all that ever ran have printed about something, and of their leadership, in the order of time. */
  linesAbout(about: RegExp): string {
    const lines = [...this.#started].flatMap(([identity, { lastErrors }]) =>
      lastErrors.filter((line) => about.test(line) || line.includes(LEASE)).map((line) => [line, identity])
    );
    return lines.sort(([a], [b]) => a < b ? -1 : 1).map(([line, identity]) => `${identity}: ${line}`).join(
      "\n",
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const running = [...this.#running.values()];
    for (const copy of running) copy.kill();
    await Promise.all(running.map((copy) => copy.ended));
  }
}

describe(
  "Manager: a Widget controller on Deno, Node and Bun while its leader and its API server are killed",
  {
    skip: skipWithoutOwnServer,
  },
  () => {
    let connection: OwnConnection;
    before(async () => {
      connection = await startOwn();
    });
    after(() => connection?.[Symbol.asyncDispose]());

    it("makes no object twice and forgets none", { timeout: 900_000 }, async () => {
      const { cluster, config, server } = connection;
      const seed = newSeed();
      const random = seededRandom(seed);
      const [namespace] = await connection.createNamespaces("widgets");
      await cluster.resource("apiextensions.k8s.io/v1/customresourcedefinitions").create(DEFINITION);
      const widgets = cluster.resource<Widget>("example.com/v1/widgets", { namespace });
      const configMaps = cluster.resource<ConfigMap>("v1/configmaps", { namespace });
      const secrets = cluster.resource<KubernetesObject>("v1/secrets", { namespace });
      const leases = cluster.resource<Lease>("coordination.k8s.io/v1/leases", { namespace: "default" });
      await eventually(() => widgets.list());

      // The uids of Secrets that were ever there, by the uid of their Widget.
      const made = new Map<string, Set<string>>();
      // The witness tries every second: with default delays it could sleep through all that comes between
      // kills.
      const witness = new SharedIndexInformer(
        newCluster(config).resource<KubernetesObject>("v1/secrets", { namespace }),
        { reflector: { backoff: { nextDelayMs: () => 1_000 } } },
      );
      witness.addEventHandler({
        onAdd: ({ metadata }) => {
          const owner = metadata?.ownerReferences?.[0].uid ?? "";
          made.set(owner, (made.get(owner) ?? new Set()).add(metadata?.uid ?? ""));
        },
      });
      await using _watching = witness.start();
      await witness.synced();

      await using copies = new Copies(connection.kubeconfigPath);
      await Promise.all(COPIES.map((runtime) => copies.start(runtime)));
      const holder = async () => (await leases.get(LEASE)).spec?.holderIdentity ?? "";
      await eventually(async () => assert.notEqual(await holder(), ""));

      const colors = new Map<string, string>();
      let isOver = false;
      const writer = (async () => {
        for (let i = 0; !isOver; i++) {
          await pause(20 + random() * 80);
          const names = [...colors.keys()];
          const name = names[Math.floor(random() * names.length)];
          const color = `c${i}`;
          const choice = random();
          try {
            if (names.length < 20 || choice < 0.3) {
              await widgets.create({ ...WIDGET, metadata: { name: `w${i}` }, spec: { color } });
              colors.set(`w${i}`, color);
            } else if (choice < 0.5) {
              colors.delete(name);
              // This state only: kube-apiserver deletes an object at once that had no finalizer when it
              // looked, even if one came meanwhile, and no garbage collector is here to repair that:
              // https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go#L1139-L1215
              const { resourceVersion = "" } = (await widgets.get(name)).metadata ?? {};
              await widgets.delete(name, { preconditions: { resourceVersion } });
            } else {
              await widgets.patch(name, { spec: { color } });
              colors.set(name, color);
            }
          } catch {
            // The server was away: what it made of the request is read at the end.
          }
        }
      })();

      const faults = [...Array(LEADER_KILLS).fill("leader"), ...Array(SERVER_KILLS).fill("server")];
      for (let left = faults.length; left > 0; left--) {
        const [fault] = faults.splice(Math.floor(random() * left), 1);
        await pause(500 + random() * 2_500);
        if (fault === "server") {
          await server.kill();
          await pause(random() * 3_000);
          await server.restart();
        } else {
          await eventually(async () => assert.ok(copies.kill(await holder())), { timeoutMs: 60_000 });
        }
      }
      isOver = true;
      await writer;

      let orphans: string[] = [];
      await eventually(async () => {
        const { items } = await widgets.list();
        const maps = (await configMaps.list()).items.filter(({ metadata }) =>
          metadata?.name?.startsWith("widget-")
        );
        const byName = new Map(maps.map((map) => [map.metadata?.name, map]));
        for (const { metadata, spec, status } of items) {
          assert.equal(
            metadata?.deletionTimestamp,
            undefined,
            `seed ${seed}: ${metadata?.name} is not deleted`,
          );
          const map = byName.get(`widget-${metadata?.name}`);
          assert.equal(map?.data?.color, spec?.color, `seed ${seed}: the ConfigMap of ${metadata?.name}`);
          assert.equal(status?.message, spec?.color, `seed ${seed}: the status of ${metadata?.name}`);
        }
        const names = new Set(items.map(({ metadata }) => `widget-${metadata?.name}`));
        const left = maps.filter(({ metadata }) => !names.has(metadata?.name ?? ""));
        orphans = left.map(({ metadata }) => metadata?.name?.slice("widget-".length) ?? "");
        assert.deepEqual(left, [], `seed ${seed}: ConfigMaps of Widgets that are deleted`);
        const owners = (await secrets.list()).items.map(({ metadata }) => metadata?.ownerReferences?.[0].uid);
        for (const { metadata } of items) {
          assert.equal(
            owners.filter((uid) => uid === metadata?.uid).length,
            1,
            `seed ${seed}: Secrets of ${metadata?.name}`,
          );
        }
        // After so many outages in a row, a reflector waits for up to a
        // minute before a try, as client-go's does.
      }, { timeoutMs: 240_000 }).catch(async (error) => {
        const about = new RegExp(`\\b(${orphans.join("|") || "w\\d+"})\\b`);
        console.log(`${await holder()} leads\n${copies.linesAbout(about)}`);
        throw error;
      });
      await eventually(async () => {
        for (const { metadata } of (await widgets.list()).items) {
          assert.ok(made.has(metadata?.uid ?? ""), `seed ${seed}: no Secret of ${metadata?.name} was seen`);
        }
      });
      for (const [owner, uids] of made) {
        assert.equal(uids.size, 1, `seed ${seed}: ${owner} had ${uids.size} Secrets`);
      }
      assert.ok(made.size > 50, `seed ${seed}: only ${made.size} Widgets`);
    });
  },
);
