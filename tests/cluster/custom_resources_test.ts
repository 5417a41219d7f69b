import { isNotFound, parseResource, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import type { Quarantined } from "@listwatch/cache/reflector";
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import * as z from "zod/mini";
import { connect, type TestConnection } from "./connection.ts";
import { eventually } from "./eventually.ts";
import { quickRetries, Reflected } from "./reflected.ts";
import { defineWidgets, newWidget, removeWidgets, type Widget } from "./widgets.ts";

describe("SharedIndexInformer of a custom resource", () => {
  let connection: TestConnection;
  let namespace: string;
  let group: string;
  before(async () => {
    connection = await connect();
    [namespace] = await connection.createNamespaces("custom");
    group = `${connection.uniqueName("widgets")}.example.com`;
  });
  after(() => connection?.[Symbol.asyncDispose]());

  it(
    "follows it from before its definition until after the definition was deleted",
    { timeout: 120_000 },
    async () => {
      const { cluster } = connection;
      const widgets = cluster.resource<Widget>(parseResource(`${group}/v1/widgets`), { namespace });
      await using reflected = new Reflected(widgets, { name: "widgets", reflector: quickRetries() });
      await eventually(() => assert.ok(reflected.errors.length > 0));
      assert.ok(isNotFound(reflected.errors[0]), reflected.errors[0].message);
      assert.ok(!reflected.informer.hasSynced());

      await defineWidgets(connection, group);
      await reflected.synced();
      assert.deepEqual(reflected.informer.indexer.list(), []);

      for (let i = 0; i < 20; i++) await widgets.create(newWidget(group, `w-${i}`, { namespace, size: i }));
      for (let i = 0; i < 20; i += 2) await widgets.patch(`w-${i}`, { spec: { size: 100 + i } });
      for (let i = 0; i < 20; i += 5) await widgets.delete(`w-${i}`);
      assert.equal((await reflected.equalsServer(widgets)).length, 16);
      const [known] = reflected.informer.indexer.list();
      assert.deepEqual([known.apiVersion, known.kind], [`${group}/v1`, "Widget"]);
      const { history } = reflected;
      assert.deepEqual([history.count("add"), history.count("update"), history.count("delete")], [20, 10, 4]);

      // The server deletes the objects of the definition; the watch may end before it has sent that.
      await removeWidgets(connection, group);
      await eventually(() => assert.deepEqual([...history.objects.keys()], []), { timeoutMs: 60_000 });
      assert.deepEqual(reflected.informer.indexer.list(), []);
      reflected.assertSound();
    },
  );

  it(
    "quarantines objects that its schema does not accept, and stores the others",
    { timeout: 120_000 },
    async () => {
      const { cluster } = connection;
      const judgedGroup = `judged.${group}`;
      await defineWidgets(connection, judgedGroup);
      const widgets = cluster.resource<Widget>(parseResource(`${judgedGroup}/v1/widgets`), { namespace });
      await widgets.create(newWidget(judgedGroup, "good", { namespace, size: 1 }));
      await widgets.create(newWidget(judgedGroup, "bad", { namespace, size: "large" }));

      const schema = z.looseObject({ spec: z.looseObject({ size: z.number() }) });
      const judged = cluster.resource(parseResource(`${judgedGroup}/v1/widgets`), { namespace, schema });
      for (const useWatchList of [true, false]) {
        const quarantined: Quarantined[] = [];
        const informer = new SharedIndexInformer(judged, {
          logger: silentLogger,
          reflector: { useWatchList, onQuarantined: (one) => quarantined.push(one) },
        });
        await using _running = informer.start();
        await informer.synced(AbortSignal.timeout(30_000));
        assert.deepEqual(informer.indexer.list().map(({ spec }) => spec.size), [1]);
        assert.deepEqual(quarantined.map(({ key }) => key), [`${namespace}/bad`]);
        assert.match(quarantined[0].path, /spec\.size/);

        const late = `late-${useWatchList}`;
        await widgets.create(newWidget(judgedGroup, late, { namespace, size: "huge" }));
        await widgets.create(newWidget(judgedGroup, `${late}-good`, { namespace, size: 2 }));
        await eventually(() => assert.ok(informer.indexer.getByKey(`${namespace}/${late}-good`)));
        assert.deepEqual(quarantined.map(({ key }) => key), [`${namespace}/bad`, `${namespace}/${late}`]);
        assert.equal(informer.status().quarantined, 2);
        assert.equal(informer.status().phase, "watching");
        await widgets.delete(late);
        await widgets.delete(`${late}-good`);
        await eventually(() => assert.equal(informer.indexer.list().length, 1));
      }
    },
  );
});
