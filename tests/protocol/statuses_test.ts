import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ApiResource } from "../../src/protocol/api_resource.ts";
import {
  builtinResource,
  builtinResources,
  describedResource,
} from "../../src/protocol/builtin_resources.ts";
import { fieldRules } from "../../src/protocol/selectable_fields.ts";
import { PushedBody, pushedBodyOf } from "../../src/protocol/server_sockets.ts";
import {
  continueTooOld,
  invalidFields,
  isStatus,
  methodNotAllowed,
  objectNotFound,
  requestTimedOut,
  resourceDetails,
  tooLargeResourceVersion,
  unknownPath,
  watchTooOld,
} from "../../src/protocol/statuses.ts";
import { hasTable, isAction, subresourcesOf } from "../../src/protocol/subresources.ts";

const PODS: ApiResource = { group: "", version: "v1", resource: "pods", kind: "Pod", namespaced: true };
const DEPLOYMENTS = builtinResource({ group: "apps", version: "v1", resource: "deployments" })!;
const WIDGETS: ApiResource = { ...PODS, group: "example.com", resource: "widgets", kind: "Widget" };

describe("objectNotFound and the other refusals", () => {
  it("have the codes, reasons and words of an API server", () => {
    const refusals = [
      unknownPath(),
      objectNotFound(PODS, "web"),
      objectNotFound(DEPLOYMENTS, "web"),
      methodNotAllowed(),
      watchTooOld("5", "7"),
      tooLargeResourceVersion("9", "7"),
      requestTimedOut(),
      invalidFields("ListOptions.meta.k8s.io", { causes: [{ field: "limit", message: "no" }] }),
      invalidFields("Pod", {
        name: "web",
        causes: [{ field: "a", message: "no" }, { field: "b", message: "not" }],
      }),
    ];
    assert.deepEqual(refusals.map(({ code, reason, message }) => `${code} ${reason}: ${message}`), [
      "404 NotFound: the server could not find the requested resource",
      '404 NotFound: pods "web" not found',
      '404 NotFound: deployments.apps "web" not found',
      "405 MethodNotAllowed: the server does not allow this method on the requested resource",
      "410 Expired: too old resource version: 5 (7)",
      "504 Timeout: Timeout: Too large resource version: 9, current: 7",
      "504 Timeout: Timeout: request did not complete within the allotted timeout",
      '422 Invalid: ListOptions.meta.k8s.io "" is invalid: limit: no',
      '422 Invalid: Pod "web" is invalid: [a: no, b: not]',
    ]);
    for (const status of refusals) assert.ok(isStatus(status));
    for (const other of [{}, { kind: "Pod" }]) assert.ok(!isStatus(other));
    assert.deepEqual(unknownPath().details, {});
    assert.deepEqual(objectNotFound(PODS, "web").details, { name: "web", kind: "pods" });
    assert.deepEqual(objectNotFound(DEPLOYMENTS, "web").details, {
      name: "web",
      group: "apps",
      kind: "deployments",
    });
    assert.deepEqual(resourceDetails(PODS), { kind: "pods" });
    assert.deepEqual(tooLargeResourceVersion("9", "7").details, {
      causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
      retryAfterSeconds: 1,
    });
    assert.equal("name" in invalidFields("Pod", { causes: [] }).details!, false);
    assert.deepEqual(invalidFields("Pod", { name: "web", kind: "Pod", causes: [] }).details, {
      name: "web",
      kind: "Pod",
      causes: [],
    });
  });

  it("have the token that continues at the newest state", () => {
    const status = continueTooOld("abc");
    assert.deepEqual([status.code, status.reason, status.metadata], [410, "Expired", { continue: "abc" }]);
    assert.match(
      status.message ?? "",
      /^The provided continue parameter is too old to display a consistent /,
    );
  });
});

describe("subresourcesOf", () => {
  it("has those of a built-in resource by their names, those of a custom one as its definition does", () => {
    const of = (group: string, resource: string) => subresourcesOf({ ...PODS, group, resource });
    assert.deepEqual(of("", "pods"), ["ephemeralcontainers", "resize", "status"]);
    assert.deepEqual(of("apps", "deployments"), ["scale", "status"]);
    assert.deepEqual(of("", "configmaps"), []);
    assert.deepEqual(of("storage.k8s.io", "csinodes"), ["status"]);
    assert.deepEqual(of("certificates.k8s.io", "certificatesigningrequests"), ["approval", "status"]);
    assert.deepEqual(subresourcesOf(WIDGETS), []);
    const scale = { specReplicasPath: ".spec.size", statusReplicasPath: ".status.size" };
    assert.deepEqual(subresourcesOf({ ...WIDGETS, subresources: { status: true, scale } }), [
      "status",
      "scale",
    ]);
    assert.deepEqual(subresourcesOf({ ...WIDGETS, subresources: { scale } }), ["scale"]);
    assert.deepEqual(subresourcesOf({ ...WIDGETS, resource: "pods" }), []);
  });
});

describe("isAction", () => {
  it("is true of what no cache has, by its resource", () => {
    assert.ok(isAction(PODS, "exec"));
    assert.ok(!isAction(PODS, "status"));
    assert.ok(!isAction(WIDGETS, "exec"));
    assert.deepEqual(["scale", "status", "approval"].map(hasTable), [true, true, false]);
  });
});

describe("describedResource", () => {
  it("finds built-in resources by their text, and takes a description as it is", () => {
    assert.equal(describedResource(WIDGETS, "serve"), WIDGETS);
    assert.equal(describedResource("apps/v1/deployments", "serve"), DEPLOYMENTS);
    assert.throws(
      () => describedResource("example.com/v1/widgets", "serve"),
      /^TypeError: Cannot serve "example.com\/v1\/widgets": it is none of Kubernetes' own resources/,
    );
  });

  it("has what discovery says of built-in resources", () => {
    const { fieldSelectors, ...pods } = builtinResource(PODS)!;
    assert.ok(fieldSelectors?.includes("spec.nodeName"));
    assert.deepEqual(pods, { ...PODS, shortNames: ["po"], categories: ["all"] });
    const nodes = builtinResource({ group: "", version: "v1", resource: "nodes" });
    assert.deepEqual([nodes?.namespaced, nodes?.shortNames, nodes?.categories], [false, ["no"], undefined]);
    const endpoints = builtinResource({ group: "", version: "v1", resource: "endpoints" });
    assert.match(endpoints?.deprecationWarning ?? "", /Endpoints/);
    const warned = builtinResources().filter((one) => one.deprecationWarning !== undefined);
    assert.deepEqual(warned.map(({ kind }) => kind), ["Endpoints"]);
    for (const one of builtinResources()) {
      assert.equal(builtinResource(one), one);
      assert.notEqual(one.fieldSelectors?.length, 0);
      assert.ok(!("shortNames" in one) || one.shortNames!.every((name) => /^[a-z]+$/.test(name)), one.kind);
    }
    assert.equal(builtinResource({ ...PODS, group: "apps" }), undefined);
    assert.equal(builtinResource({ ...PODS, version: "v2" }), undefined);
    const events = builtinResource({ group: "events.k8s.io", version: "v1", resource: "events" });
    assert.ok(events?.fieldSelectors?.includes("regarding.name"));
  });

  it("hands out its list as a copy", () => {
    const { length } = builtinResources();
    builtinResources().length = 0;
    assert.equal(builtinResources().length, length);
  });
});

describe("fieldRules", () => {
  it("has the fields that a resource names, else those of its scope, and what comes with the cache", () => {
    const configMaps = builtinResource({ group: "", version: "v1", resource: "configmaps" })!;
    const names = ["metadata.name", "metadata.namespace"];
    assert.deepEqual([...fieldRules(configMaps).selectableFields].sort(), names);
    assert.deepEqual([...fieldRules(WIDGETS).selectableFields].sort(), names);
    assert.deepEqual(fieldRules({ ...WIDGETS, namespaced: false }).selectableFields, ["metadata.name"]);
    assert.deepEqual(fieldRules({ ...WIDGETS, fieldSelectors: ["spec.a"] }).selectableFields, ["spec.a"]);
    assert.deepEqual(fieldRules({ ...WIDGETS, fieldSelectors: ["spec.a"] }, ["spec.b"]).selectableFields, [
      "spec.a",
      "spec.b",
    ]);
    for (const more of [[], ["spec.c"]]) {
      assert.equal(fieldRules(WIDGETS, more).unsupportedField("spec.b"), "field label not supported: spec.b");
      assert.equal(
        fieldRules(configMaps, more).unsupportedField("spec.b"),
        '"spec.b" is not a known field selector: only "metadata.name", "metadata.namespace"',
      );
    }
    const jobs = builtinResources().find(({ kind }) => kind === "Job")!;
    assert.equal(
      fieldRules(jobs).unsupportedField("spec.b"),
      'field label "spec.b" not supported for Job',
    );
    const slices = builtinResources().find(({ kind }) => kind === "ResourceSlice")!;
    assert.equal(
      fieldRules(slices).unsupportedField("spec.b"),
      "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.b",
    );
  });
});

describe("pushedBodyOf", () => {
  it("is the body of a response that can be pushed and has no reader", () => {
    const newBody = () => new PushedBody({ type: "bytes" }, () => assert.fail("not pushed"));
    const body = newBody();
    assert.equal(pushedBodyOf(new Response(body)), body);
    assert.equal(typeof body.pushTo, "function");
    const read = new Response(newBody());
    read.body!.getReader();
    assert.equal(pushedBodyOf(read), undefined);
    for (const other of [new Response("text"), new Response(null)]) {
      assert.equal(pushedBodyOf(other), undefined);
    }
  });
});
