import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newCluster } from "@listwatch/cache";
import { answerStatus, InMemoryApiServer } from "@listwatch/cache/testing";
import { readDefinitions } from "../../../src/cli/cluster/definitions.ts";
import type { ApiResource } from "../../../src/protocol/api_resource.ts";
import { realClock } from "../../../src/util/clock.ts";
import { LogRecorder } from "../../log_recorder.ts";
import { WIDGET_RESOURCE, widgetDefinition } from "../../widgets.ts";

const CRDS = "apiextensions.k8s.io/v1/customresourcedefinitions";

function definition(columns: string[]) {
  const additionalPrinterColumns = columns.map((name) => ({
    name,
    type: "string",
    jsonPath: `.spec.${name}`,
  }));
  const schema = { openAPIV3Schema: { type: "object" } };
  const old = { name: "v1beta1", served: true, storage: false, schema };
  const selectableFields = [{ jsonPath: ".spec.color" }];
  const subresources = { status: {}, scale: SCALE };
  return widgetDefinition({
    names: { shortNames: ["wd"], categories: ["all"] },
    version: { schema, additionalPrinterColumns, selectableFields, subresources },
    olderVersions: [old],
  });
}

const SCALE = { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" };

function setUp() {
  const server = new InMemoryApiServer();
  const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
  const resource: ApiResource = { ...WIDGET_RESOURCE };
  const logger = new LogRecorder();
  const options = { clock: realClock, logger, signal: new AbortController().signal };
  return { server, cluster, resource, logger, options };
}

describe("readDefinitions", () => {
  it("takes over the warning of a deprecated version, or says which version to use", async () => {
    const warningOf = async (v1: object, others: readonly object[]): Promise<string | undefined> => {
      const { server, cluster, resource, options } = setUp();
      const { spec, ...rest } = definition([]);
      const [, current] = spec.versions;
      const more = others.map((other) => ({ ...current, storage: false, ...other }));
      server.create(CRDS, { ...rest, spec: { ...spec, versions: [{ ...current, ...v1 }, ...more] } });
      await readDefinitions(cluster, [resource], options);
      server.close();
      return resource.deprecationWarning;
    };
    const deprecated = { deprecated: true };
    assert.equal(await warningOf({}, [{ name: "v2" }]), undefined);
    assert.equal(await warningOf(deprecated, []), "example.com/v1 Widget is deprecated");
    const others = [{ name: "v1beta1" }, { name: "v2" }, { name: "v3", deprecated: true }, {
      name: "v4",
      served: false,
    }];
    assert.equal(
      await warningOf(deprecated, others),
      "example.com/v1 Widget is deprecated; use example.com/v2 Widget",
    );
    assert.equal(
      await warningOf({ deprecated: true, deprecationWarning: "removed soon" }, others),
      "removed soon",
    );
  });

  it("leaves a resource as it is whose definition does not have its version", async () => {
    const { server, cluster, resource, options } = setUp();
    const { spec, ...rest } = definition(["color"]);
    const versions = spec.versions.map((version) => ({ ...version, name: `${version.name}alpha1` }));
    server.create(CRDS, { ...rest, spec: { ...spec, versions } });
    const before = { ...resource };
    await readDefinitions(cluster, [resource], options);
    assert.deepEqual(resource, before);
    server.close();
  });

  it("describes a custom resource as its definition does, and follows it", async () => {
    const { server, cluster, resource, options } = setUp();
    server.create(CRDS, definition(["color"]));
    const builtin: ApiResource = {
      group: "",
      version: "v1",
      resource: "pods",
      kind: "Pod",
      namespaced: true,
    };
    const definitions = await readDefinitions(cluster, [builtin, resource], options);
    assert.deepEqual(resource, {
      ...WIDGET_RESOURCE,
      printerColumns: [{ name: "color", type: "string", jsonPath: ".spec.color" }],
      fieldSelectors: ["metadata.name", "metadata.namespace", "spec.color"],
      subresources: { status: true, scale: SCALE },
      singularName: "widget",
      shortNames: ["wd"],
      categories: ["all"],
      deprecationWarning: undefined,
    });
    assert.equal(builtin.printerColumns, undefined);
    const stop = new AbortController();
    const running = definitions.run(stop.signal);
    server.update(CRDS, definition(["color", "size"]));
    for (let i = 0; i < 2_000 && resource.printerColumns?.length !== 2; i++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    assert.equal(resource.printerColumns?.[1]?.name, "size");
    const { spec, ...rest } = definition([]);
    const versions = spec.versions.map((version) => ({ ...version, additionalPrinterColumns: undefined }));
    server.update(CRDS, { ...rest, spec: { ...spec, versions } });
    for (let i = 0; i < 2_000 && resource.printerColumns.length > 0; i++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    assert.deepEqual(resource.printerColumns, [], "a definition without columns has none");
    stop.abort();
    await running;
    server.close();
  });

  it("lets cluster-scoped resources be selected by no namespace", async () => {
    const { server, cluster, options } = setUp();
    server.create(CRDS, definition([]));
    const resource: ApiResource = { ...WIDGET_RESOURCE, namespaced: false };
    await readDefinitions(cluster, [resource], options);
    assert.deepEqual(resource.fieldSelectors, ["metadata.name", "spec.color"]);
    server.close();
  });

  it("leaves a resource without a definition as it is, without a message", async () => {
    const { server, cluster, resource, logger, options } = setUp();
    const definitions = await readDefinitions(cluster, [resource], options);
    assert.equal(resource.printerColumns, undefined);
    assert.deepEqual(logger.lines, []);
    // Nothing is followed.
    await definitions.run(new AbortController().signal);
    server.close();
  });

  it("says which definition may not be read", async () => {
    const { server, cluster, resource, logger, options } = setUp();
    server.create(CRDS, definition(["color"]));
    server.intercept(answerStatus(403));
    const definitions = await readDefinitions(cluster, [resource], options);
    assert.equal(resource.printerColumns, undefined);
    assert.match(JSON.stringify(logger.lines), /definition of widgets.example.com may not be read/);
    await definitions.run(new AbortController().signal);
    server.close();
  });
});
