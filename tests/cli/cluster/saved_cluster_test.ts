import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { sqliteSnapshot } from "@listwatch/cache/node";
import {
  prepareFolder,
  removeOtherSnapshots,
  SavedCluster,
  type SavedSelection,
  snapshotPath,
} from "../../../src/cli/cluster/saved_cluster.ts";
import type { ServeSettings } from "../../../src/cli/serve/serve_options.ts";
import type { ApiResource } from "../../../src/protocol/api_resource.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { LogRecorder } from "../../log_recorder.ts";

const folder = mkdtempSync(join(tmpdir(), "listwatch-saved-"));
after(() => rmSync(folder, { recursive: true }));

let folders = 0;
const newFolder = () => {
  const path = join(folder, String(folders++));
  mkdirSync(path);
  return path;
};

describe("prepareFolder", () => {
  it("makes a folder, and those above it, that only their owner may open", async () => {
    const logger = new LogRecorder();
    const path = join(newFolder(), "a", "b");
    await prepareFolder(path, logger);
    assert.equal(statSync(path).mode & 0o777, 0o700);
    assert.equal(statSync(join(path, "..")).mode & 0o777, 0o700);
    assert.deepEqual(logger.lines, []);
  });

  it("takes one that only its owner may write as it is", async () => {
    for (const mode of [0o700, 0o755, 0o1755]) {
      const logger = new LogRecorder();
      const path = newFolder();
      chmodSync(path, mode);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await prepareFolder(path, logger);
      assert.equal(statSync(path).mode & 0o7777, mode);
      assert.deepEqual(logger.lines, [], mode.toString(8));
    }
  });

  it("warns where the group may write it, or all users may add files but not replace those of others", async () => {
    for (const mode of [0o770, 0o775, 0o720, 0o1777, 0o1702]) {
      const logger = new LogRecorder();
      const path = newFolder();
      chmodSync(path, mode);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await prepareFolder(path, logger);
      const line = `other users may write the folder ${path}, and so decide what is served: chmod 700`;
      assert.deepEqual(logger.lines, [`warn: ${line}`], mode.toString(8));
    }
  });

  it("refuses one in which every user may replace files, and what is no folder", async () => {
    const logger = new LogRecorder();
    for (const mode of [0o777, 0o702, 0o757]) {
      const path = newFolder();
      chmodSync(path, mode);
      const refused = {
        name: "CommandError",
        message: /every user may write it, .+ use another one, or chmod 700$/,
      };
      // deno-lint-ignore no-await-in-loop -- one after the other
      await assert.rejects(prepareFolder(path, logger), refused, mode.toString(8));
    }
    const file = join(newFolder(), "file");
    writeFileSync(file, "");
    await assert.rejects(prepareFolder(join(file, "x"), logger), {
      name: "CommandError",
      message: new RegExp(`^Cannot use the folder ${join(file, "x")} for snapshots: `),
    });
    assert.deepEqual(logger.lines, []);
  });
});

const resource = (name: string, group = "", version = "v1") =>
  ({ group, version, resource: name }) as unknown as ApiResource;

/** Writes a snapshot of nothing. */
async function writeSnapshot(path: string): Promise<void> {
  const { storage } = sqliteSnapshot(path);
  await Promise.resolve(storage.load({ resource: "", source: "" }));
  const content = { resourceVersion: "1", savedAtMs: 0, needsList: false, replaces: true };
  await storage.save({ ...content, puts: [], deletes: [] });
  await storage.close?.();
}

describe("removeOtherSnapshots", () => {
  it("removes the snapshots that are named as those of other resources, and says which", async () => {
    const own = newFolder();
    const logger = new LogRecorder();
    const [pods, deployments] = [resource("pods"), resource("deployments", "apps")];
    const others = ["example.com_v1alpha1_widgets", "v1_secrets", "batch_v2beta10_jobs"];
    const strange = [
      "pods",
      "v1_Pods",
      "v_pods",
      "v1gamma1_pods",
      "a_b_v1_pods",
      "A_v1_pods",
      "vv1_pods",
      "v1_pods_",
    ];
    for (const name of [...others, ...strange]) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      await writeSnapshot(join(own, `${name}.sqlite`));
    }
    for (const kept of [pods, deployments]) {
      // deno-lint-ignore no-await-in-loop
      await writeSnapshot(snapshotPath(own, kept));
    }
    writeFileSync(join(own, "v1_nodes.txt"), "");
    await removeOtherSnapshots(own, { resources: [pods, deployments], logger });
    assert.deepEqual(
      readdirSync(own).sort(),
      [...strange, "v1_pods", "apps_v1_deployments"].map((name) => `${name}.sqlite`).concat("v1_nodes.txt")
        .sort(),
    );
    assert.deepEqual(logger.lines, [
      `info: removed snapshots of resources that are not selected in ${own}: batch_v2beta10_jobs.sqlite, ` +
      "example.com_v1alpha1_widgets.sqlite, v1_secrets.sqlite",
    ]);
    await removeOtherSnapshots(own, { resources: [pods, deployments], logger });
    assert.equal(logger.lines.length, 1);
  });

  it("leaves what is no snapshot, says so, and removes the others", async () => {
    const own = newFolder();
    const logger = new LogRecorder();
    writeFileSync(join(own, "v1_notes.sqlite"), "precious");
    await writeSnapshot(join(own, "v1_pods.sqlite"));
    await removeOtherSnapshots(own, { resources: [], logger });
    assert.deepEqual(readdirSync(own), ["v1_notes.sqlite"]);
    assert.equal(logger.of("warn").length, 1);
    assert.match(
      logger.of("warn")[0],
      new RegExp(`^warn: cannot remove the snapshot ${join(own, "v1_notes.sqlite")}: `),
    );
    assert.match(logger.of("info")[0], /: v1_pods\.sqlite$/);
  });
});

describe("SavedCluster", () => {
  const connection = { server: "https://a", context: "a" };
  const selection = {
    resources: [],
    discoveryOrder: [],
    served: [],
    clusterUid: "u-1",
  } as unknown as SavedSelection;
  const settings = (more: Partial<ServeSettings> = {}) => {
    const logger = new LogRecorder();
    const given = { clock: new FakeClock(), allowSecrets: false, ...more, logger };
    return { logger, given: given as unknown as ServeSettings };
  };

  it("has what was saved with the same options only", async () => {
    const own = newFolder();
    const { given, logger } = settings();
    const saved = new SavedCluster(own, connection, given);
    assert.equal(await saved.load(), undefined);
    await saved.save(selection);
    await saved.saved();
    assert.deepEqual(logger.lines, []);
    assert.deepEqual(await new SavedCluster(own, connection, given).load(), { ...selection });
    for (
      const [other, more] of [
        [{ ...connection, server: "https://b" }, {}],
        [{ ...connection, context: "b" }, {}],
        [connection, { resources: ["pods"] }],
        [connection, { namespace: "shop" }],
        [connection, { allowSecrets: true }],
      ] as const
    ) {
      const options = settings(more as Partial<ServeSettings>);
      // deno-lint-ignore no-await-in-loop -- one after the other
      const loaded = await new SavedCluster(own, other, options.given).load();
      assert.equal(loaded, undefined, JSON.stringify([other, more]));
    }
  });

  it("writes what has changed only, and a failure again", async () => {
    const own = newFolder();
    const { given, logger } = settings();
    const saved = new SavedCluster(own, connection, given);
    await saved.save(selection);
    const path = join(own, "cluster.sqlite");
    rmSync(path);
    await saved.save({ ...selection });
    assert.equal(existsSync(path), false);
    mkdirSync(path); // no database can be written there
    await saved.save({ ...selection, clusterUid: "u-2" });
    assert.match(logger.of("error")[0], /^error: cannot save what is known of the cluster: /);
    rmSync(path, { recursive: true });
    await saved.save({ ...selection, clusterUid: "u-2" });
    assert.equal((await new SavedCluster(own, connection, given).load())?.clusterUid, "u-2");
  });

  it("has nothing where the file is damaged, and says so", async () => {
    const own = newFolder();
    const { given, logger } = settings();
    writeFileSync(join(own, "cluster.sqlite"), "x".repeat(5_000));
    assert.equal(await new SavedCluster(own, connection, given).load(), undefined);
    assert.equal(logger.lines.length, 1);
    assert.match(logger.lines[0], new RegExp(`^warn: cannot use ${join(own, "cluster.sqlite")}: `));
  });
});
