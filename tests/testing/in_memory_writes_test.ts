import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isConflict, isNotFound, StatusError } from "@listwatch/cache";
import { configMap, deployment, FakeClock, pod } from "@listwatch/cache/testing";
import { WIDGET_RESOURCE, WIDGETS } from "../widgets.ts";
import { call, patch, withServer } from "./helpers.ts";

const CONFIG_MAPS = "/api/v1/namespaces/shop/configmaps";

describe("InMemoryApiServer: POST", () => {
  it("sets uid, resourceVersion, creationTimestamp and namespace of an object", () =>
    withServer({ clock: new FakeClock(Date.UTC(2026, 0, 2, 3, 4, 5, 678)) }, async (server) => {
      const { status, body } = await call(server, "POST", CONFIG_MAPS, {
        body: { metadata: { name: "a" }, data: { k: "v" } },
      });
      assert.equal(status, 201);
      assert.match(
        body.metadata.uid,
        /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      );
      assert.deepEqual(body, {
        kind: "ConfigMap",
        apiVersion: "v1",
        metadata: {
          name: "a",
          namespace: "shop",
          uid: body.metadata.uid,
          resourceVersion: "2",
          creationTimestamp: "2026-01-02T03:04:05Z",
        },
        data: { k: "v" },
      });
      assert.deepEqual((await call(server, "GET", `${CONFIG_MAPS}/a`)).body, body);
    }));

  it("gives a new object a uid and a time of its own, whatever it comes with", () =>
    withServer({ clock: new FakeClock(Date.UTC(2026, 0, 2)) }, async (server) => {
      const given = {
        uid: "given",
        creationTimestamp: "2020-01-01T00:00:00Z",
        resourceVersion: "",
        generation: 7,
      };
      const { body } = await call(server, "POST", CONFIG_MAPS, {
        body: { metadata: { name: "a", ...given } },
      });
      assert.notEqual(body.metadata.uid, "given");
      assert.equal(body.metadata.creationTimestamp, "2026-01-02T00:00:00Z");
      assert.equal(body.metadata.generation, undefined);
    }));

  it("counts one resourceVersion for all resources", () =>
    withServer({}, async (server) => {
      const a = await call(server, "POST", CONFIG_MAPS, { body: { metadata: { name: "a" } } });
      const n = await call(server, "POST", "/api/v1/nodes", { body: { metadata: { name: "n" } } });
      const list = await call(server, "GET", CONFIG_MAPS);
      assert.deepEqual(
        [
          a.body.metadata.resourceVersion,
          n.body.metadata.resourceVersion,
          list.body.metadata.resourceVersion,
        ],
        ["2", "3", "3"],
      );
      assert.equal(server.resourceVersion, "3");
    }));

  it("completes generateName, to the same name in every run", async () => {
    const names: string[] = [];
    for (let run = 0; run < 2; run++) {
      // deno-lint-ignore no-await-in-loop
      await withServer({}, async (server) => {
        const { body } = await call(server, "POST", CONFIG_MAPS, {
          body: { metadata: { generateName: "web-" } },
        });
        names.push(body.metadata.name);
      });
    }
    assert.match(names[0], /^web-[a-z0-9]{5}$/);
    assert.equal(names[0], names[1]);
  });

  it("refuses the objects that kube-apiserver refuses, with its texts", () =>
    withServer({ requireNamespaces: true }, async (server) => {
      server.create("v1/namespaces", { metadata: { name: "shop" } });
      server.create("v1/configmaps", configMap("taken", { namespace: "shop" }));
      const post = (body: unknown, path = CONFIG_MAPS) => call(server, "POST", path, { body });

      const exists = (await post({ metadata: { name: "taken" } })).body;
      assert.deepEqual(exists, {
        kind: "Status",
        apiVersion: "v1",
        metadata: {},
        status: "Failure",
        message: 'configmaps "taken" already exists',
        reason: "AlreadyExists",
        details: { name: "taken", kind: "configmaps" },
        code: 409,
      });
      const nameless = await post({ metadata: {} });
      assert.equal(nameless.status, 422);
      assert.equal(
        nameless.body.message,
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
      );
      const misnamed = await post({ metadata: { name: "Bad_Name" } });
      assert.equal(misnamed.status, 422);
      assert.match(
        misnamed.body.message,
        /^ConfigMap "Bad_Name" is invalid: metadata\.name: Invalid value: "Bad_Name": a lowercase RFC 1123/,
      );
      const elsewhere = await post({ metadata: { name: "a", namespace: "other" } });
      assert.equal(elsewhere.status, 400);
      const versioned = await post({ metadata: { name: "a", resourceVersion: "5" } });
      assert.deepEqual(
        [versioned.status, versioned.body.message, versioned.body.reason],
        [500, "resourceVersion should not be set on objects to be created", undefined],
      );
      const otherKind = await post({ kind: "Secret", apiVersion: "v1", metadata: { name: "a" } });
      assert.equal(otherKind.status, 400);
      const broken = await post("{nope");
      assert.equal(broken.status, 400);
      assert.match(
        broken.body.message,
        /^the object provided is unrecognized \(must be of type ConfigMap\): /,
      );
      const nowhere = await post({ metadata: { name: "a" } }, "/api/v1/namespaces/nowhere/configmaps");
      assert.deepEqual([nowhere.status, nowhere.body.message], [404, 'namespaces "nowhere" not found']);
      const yaml = await call(server, "POST", CONFIG_MAPS, {
        body: "metadata: {name: a}",
        headers: { "Content-Type": "application/yaml" },
      });
      assert.equal(yaml.status, 415);
      assert.equal(server.list("v1/configmaps").items.length, 1);
    }));

  it("leaves the status of a new object to the server", () =>
    withServer({}, async (server) => {
      const body = { metadata: { name: "p" }, spec: {}, status: { phase: "Running" } };
      const created = await call(server, "POST", "/api/v1/namespaces/shop/pods", { body });
      assert.deepEqual(created.body.status, { phase: "Pending" });
    }));

  it("changes nothing at dryRun=All", () =>
    withServer({}, async (server) => {
      const { status, body } = await call(server, "POST", `${CONFIG_MAPS}?dryRun=All`, {
        body: { metadata: { name: "a" } },
      });
      assert.deepEqual([status, body.metadata.name, body.metadata.resourceVersion], [201, "a", undefined]);
      assert.deepEqual([server.resourceVersion, server.list("v1/configmaps").items.length], ["1", 0]);
    }));

  it("takes owners that are whole references, one of which at most is the controller", () =>
    withServer({}, async (server) => {
      const owner = (kind: string, more: object) =>
        ({ apiVersion: "v1", kind, name: kind.toLowerCase(), uid: `uid-${kind}`, ...more }) as const;
      const a = owner("A", { controller: true });
      const b = { controller: true, ...owner("B", { blockOwnerDeletion: true }) };
      const create = (ownerReferences: readonly object[]) =>
        call(server, "POST", CONFIG_MAPS, { body: { metadata: { name: "own", ownerReferences } } });
      const start = 'ConfigMap "own" is invalid: ';
      const both = await create([a, owner("C", {}), b]);
      assert.equal(both.status, 422);
      const shown = `[${JSON.stringify(a)},${JSON.stringify(owner("C", {}))},${
        JSON.stringify({ ...owner("B", {}), controller: true, blockOwnerDeletion: true })
      }]`;
      const one =
        `metadata.ownerReferences: Invalid value: ${shown}: Only one reference can have Controller ` +
        'set to true. Found "true" in references for A/a and B/b';
      assert.equal(both.body.message, start + one);
      const field = "metadata.ownerReferences";
      for (
        const [reference, wanted] of [
          [
            { apiVersion: "apps/", kind: "A", name: "", uid: "" },
            `[${field}.apiVersion: Invalid value: "apps/": version must not be empty, ` +
            `${field}.name: Invalid value: "": must not be empty, ` +
            `${field}.uid: Invalid value: "": must not be empty]`,
          ],
          [
            { apiVersion: "v1", name: "x", uid: "1" },
            `${field}.kind: Invalid value: "": must not be empty`,
          ],
        ] as const
      ) {
        // deno-lint-ignore no-await-in-loop -- one after the other
        assert.equal((await create([reference])).body.message, start + wanted);
      }
      assert.equal((await create([a, owner("C", {})])).status, 201);
      const second = await patch(server, `${CONFIG_MAPS}/own`, { metadata: { ownerReferences: [a, b] } });
      assert.match(second.body.message, /Only one reference can have Controller set to true/);
    }));
});

describe("InMemoryApiServer: PUT", () => {
  it("lets only one of two writers of the same version win", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", { namespace: "shop", data: { n: "0" } }));
      const read = (await call(server, "GET", `${CONFIG_MAPS}/a`)).body;
      const write = (n: string) =>
        call(server, "PUT", `${CONFIG_MAPS}/a`, { body: { ...read, data: { n } } });
      const [first, second] = await Promise.all([write("1"), write("2")]);
      assert.deepEqual([first.status, second.status].sort(), [200, 409]);
      const loser = first.status === 409 ? first : second;
      assert.deepEqual(loser.body, {
        kind: "Status",
        apiVersion: "v1",
        metadata: {},
        status: "Failure",
        message:
          'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your ' +
          "changes to the latest version and try again",
        reason: "Conflict",
        details: { name: "a", kind: "configmaps" },
        code: 409,
      });
      assert.equal(server.resourceVersion, "3");
    }));

  it("overwrites any state without a resourceVersion", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", { namespace: "shop" }));
      const { status } = await call(server, "PUT", `${CONFIG_MAPS}/a`, { body: { metadata: { name: "a" } } });
      assert.equal(status, 200);
    }));

  it("makes no new version of an unchanged object", () =>
    withServer({}, async (server) => {
      const { metadata } = server.create("v1/configmaps", configMap("a", { namespace: "shop" }));
      const body = { data: {}, metadata: { name: "a" }, kind: "ConfigMap", apiVersion: "v1" };
      const again = await call(server, "PUT", `${CONFIG_MAPS}/a`, { body });
      assert.equal(again.body.metadata.resourceVersion, metadata.resourceVersion);
      assert.equal(server.resourceVersion, "2");
    }));

  it("keeps the server's uid, creationTimestamp and generation", () =>
    withServer({}, async (server) => {
      const before = server.create("apps/v1/deployments", deployment("web", { namespace: "shop" }));
      const metadata = { ...before.metadata, creationTimestamp: "2000-01-01T00:00:00Z", generation: 99 };
      const { body } = await call(server, "PUT", "/apis/apps/v1/namespaces/shop/deployments/web", {
        body: { ...before, metadata },
      });
      assert.deepEqual(body.metadata, before.metadata);
      const otherUid = await call(server, "PUT", "/apis/apps/v1/namespaces/shop/deployments/web", {
        body: { ...before, metadata: { ...before.metadata, uid: "other" } },
      });
      assert.equal(otherUid.status, 409);
      assert.match(
        otherUid.body.message,
        /Precondition failed: UID in precondition: other, UID in object meta: /,
      );
    }));

  it("refuses another name, an unknown object, and a malformed resourceVersion", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", { namespace: "shop" }));
      const put = (name: string, metadata: unknown) =>
        call(server, "PUT", `${CONFIG_MAPS}/${name}`, { body: { metadata } });
      assert.equal(
        (await put("a", { name: "b" })).body.message,
        "the name of the object (b) does not match the name on the URL (a)",
      );
      assert.equal((await put("unknown", { name: "unknown" })).status, 404);
      const malformed = await put("a", { name: "a", resourceVersion: "abc" });
      assert.deepEqual(
        [malformed.status, malformed.body.message],
        [500, 'strconv.ParseUint: parsing "abc": invalid syntax'],
      );
    }));
});

describe("InMemoryApiServer: a subresource for writes of a part", () => {
  it("is the object in a GET, and 404 where discovery does not name it", () =>
    withServer({}, async (server) => {
      server.create("v1/pods", pod("web-1", { namespace: "shop" }));
      server.create("apps/v1/deployments", deployment("web", { namespace: "shop" }));
      const path = "/api/v1/namespaces/shop/pods/web-1";
      const { body } = await call(server, "GET", path);
      for (const name of ["resize", "ephemeralcontainers"]) {
        assert.deepEqual((await call(server, "GET", `${path}/${name}`)).body, body);
        assert.equal((await call(server, "DELETE", `${path}/${name}`)).status, 405);
      }
      const other = "/apis/apps/v1/namespaces/shop/deployments/web/resize";
      assert.equal((await call(server, "GET", other)).status, 404);
    }));
});

describe("InMemoryApiServer: the status subresource", () => {
  const POD = "/api/v1/namespaces/shop/pods/web-1";

  it("changes the status and nothing of the spec", () =>
    withServer({}, async (server) => {
      server.create("v1/pods", pod("web-1", { namespace: "shop", nodeName: "n1", phase: "Pending" }));
      const { body } = await patch(server, `${POD}/status`, {
        spec: { nodeName: "n2" },
        status: { phase: "Running" },
      });
      assert.deepEqual([body.spec.nodeName, body.status.phase], ["n1", "Running"]);
      assert.equal((await call(server, "GET", `${POD}/status`)).body.status.phase, "Running");
    }));

  it("is the only way to the status", () =>
    withServer({}, async (server) => {
      server.create("v1/pods", pod("web-1", { namespace: "shop", phase: "Running" }));
      const { body } = await patch(server, POD, {
        metadata: { labels: { a: "b" } },
        status: { phase: "Failed" },
      });
      assert.deepEqual([body.metadata.labels, body.status.phase], [{ a: "b" }, "Running"]);
    }));

  it("does not count as a new generation, as a change of the spec does", () =>
    withServer({}, async (server) => {
      const path = "/apis/apps/v1/namespaces/shop/deployments/web";
      server.create("apps/v1/deployments", deployment("web", { namespace: "shop" }));
      const generations = [
        await patch(server, path, { metadata: { labels: { a: "b" } } }),
        await patch(server, path, { spec: { replicas: 2 } }),
        await patch(server, `${path}/status`, { spec: { replicas: 9 }, status: { replicas: 2 } }),
      ].map(({ body }) => [body.metadata.generation, body.spec.replicas]);
      assert.deepEqual(generations, [[1, 1], [2, 2], [2, 2]]);
    }));

  it("does not exist for a ConfigMap", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", { namespace: "shop" }));
      const { status, body } = await call(server, "GET", `${CONFIG_MAPS}/a/status`);
      assert.deepEqual([status, body.message], [404, "the server could not find the requested resource"]);
    }));
});

describe("InMemoryApiServer: DELETE", () => {
  it("answers with a Status, and for pods with the pod", () =>
    withServer({}, async (server) => {
      const { metadata } = server.create("v1/configmaps", configMap("a", { namespace: "shop" }));
      server.create("v1/pods", pod("p", { namespace: "shop" }));
      const deleted = await call(server, "DELETE", `${CONFIG_MAPS}/a`);
      assert.equal(deleted.status, 200);
      assert.deepEqual(deleted.body, {
        kind: "Status",
        apiVersion: "v1",
        metadata: {},
        status: "Success",
        details: { name: "a", kind: "configmaps", uid: metadata.uid },
      });
      const deletedPod = await call(server, "DELETE", "/api/v1/namespaces/shop/pods/p");
      assert.deepEqual([deletedPod.body.kind, deletedPod.body.metadata.resourceVersion], ["Pod", "5"]);
      const again = await call(server, "DELETE", `${CONFIG_MAPS}/a`);
      assert.deepEqual([again.status, again.body.message], [404, 'configmaps "a" not found']);
    }));

  it("checks preconditions", () =>
    withServer({}, async (server) => {
      const { metadata } = server.create("v1/configmaps", configMap("a", { namespace: "shop" }));
      const remove = (preconditions: unknown) =>
        call(server, "DELETE", `${CONFIG_MAPS}/a`, { body: { preconditions } });
      const otherUid = await remove({ uid: "other" });
      assert.equal(otherUid.status, 409);
      assert.match(
        otherUid.body.message,
        /^Operation cannot be fulfilled on ConfigMap "a": the UID in the precond/,
      );
      assert.equal((await remove({ resourceVersion: "77" })).status, 409);
      assert.equal((await remove({ uid: metadata.uid, resourceVersion: "2" })).status, 200);
    }));

  it("waits for finalizers, and removes the object with the last of them", () =>
    withServer({ clock: new FakeClock(0) }, async (server) => {
      server.create("v1/configmaps", configMap("a", { namespace: "shop", finalizers: ["a.b/c"] }));
      const marked = await call(server, "DELETE", `${CONFIG_MAPS}/a`);
      assert.equal(marked.body.metadata.deletionTimestamp, "1970-01-01T00:00:00Z");
      assert.equal((await call(server, "GET", `${CONFIG_MAPS}/a`)).status, 200);
      const more = await patch(server, `${CONFIG_MAPS}/a`, { metadata: { finalizers: ["a.b/c", "x.y/z"] } });
      assert.equal(more.status, 422);
      assert.match(more.body.message, /no new finalizers can be added if the object is being deleted/);
      assert.equal((await patch(server, `${CONFIG_MAPS}/a`, { metadata: { finalizers: null } })).status, 200);
      assert.equal((await call(server, "GET", `${CONFIG_MAPS}/a`)).status, 404);
    }));

  it("deletes a collection by its labels, in one namespace", () =>
    withServer({}, async (server) => {
      for (const name of ["a", "b"]) {
        server.create("v1/configmaps", configMap(name, { namespace: "shop", labels: { kind: name } }));
      }
      server.create("v1/configmaps", configMap("a", { namespace: "other", labels: { kind: "a" } }));
      const { status, body } = await call(server, "DELETE", `${CONFIG_MAPS}?labelSelector=kind%3Da`);
      assert.deepEqual([status, body.kind, body.items.length], [200, "ConfigMapList", 1]);
      const left = server.list("v1/configmaps").items.map(({ metadata }) =>
        `${metadata?.namespace}/${metadata?.name}`
      );
      assert.deepEqual(left, ["other/a", "shop/b"]);
      assert.equal((await call(server, "DELETE", "/api/v1/configmaps")).status, 405);
    }));

  it("deletes a pod on a node gracefully, by option", () =>
    withServer({ gracefulPodDeletion: true, clock: new FakeClock(0) }, async (server) => {
      server.create("v1/pods", pod("p", { nodeName: "n1" }));
      const path = "/api/v1/namespaces/default/pods/p";
      const first = await call(server, "DELETE", path);
      assert.deepEqual(
        [first.body.metadata.deletionTimestamp, first.body.metadata.deletionGracePeriodSeconds],
        ["1970-01-01T00:00:30Z", 30],
      );
      const again = await call(server, "DELETE", path);
      assert.equal(again.body.metadata.resourceVersion, first.body.metadata.resourceVersion);
      await call(server, "DELETE", path, { body: { gracePeriodSeconds: 0 } });
      assert.equal((await call(server, "GET", path)).status, 404);
      assert.equal(server.resourceVersion, "5"); // marked again, then deleted
    }));

  it("reads the grace period of a query: a negative one is a second, and one that is no number is refused", () =>
    withServer({ gracefulPodDeletion: true, clock: new FakeClock(0) }, async (server) => {
      server.create("v1/pods", pod("p", { nodeName: "n1" }));
      const path = "/api/v1/namespaces/default/pods/p?gracePeriodSeconds=";
      const refused = await call(server, "DELETE", `${path}soon`);
      assert.deepEqual(
        [refused.status, refused.body.reason, refused.body.message],
        [400, "BadRequest", 'strconv.ParseInt: parsing "soon": invalid syntax'],
      );
      const seconds = [];
      for (const grace of ["20", "-5"]) {
        // deno-lint-ignore no-await-in-loop -- one after the other
        const { body } = await call(server, "DELETE", path + grace);
        seconds.push([body.metadata.deletionGracePeriodSeconds, body.metadata.deletionTimestamp]);
      }
      assert.deepEqual(seconds, [[20, "1970-01-01T00:00:20Z"], [1, "1970-01-01T00:00:01Z"]]);
      await call(server, "DELETE", `${path}0`);
      assert.equal(server.get("v1/pods", "default/p"), undefined);
    }));
});

describe("InMemoryApiServer: unknown methods and paths", () => {
  it("are answered as kube-apiserver answers them", () =>
    withServer({}, async (server) => {
      const answers: [method: string, path: string, status: number, text: string][] = [
        ["POST", "/api/v1/pods", 405, "the server does not allow this method on the requested resource"],
        ["PUT", CONFIG_MAPS, 405, "the server does not allow this method on the requested resource"],
        ["POST", `${CONFIG_MAPS}/a`, 405, "the server does not allow this method on the requested resource"],
        ["GET", "/api/v1/gizmos", 404, "the server could not find the requested resource"],
        ["GET", "/api/v2/pods", 404, "the server could not find the requested resource"],
        ["GET", "/apis/apps/v9/deployments", 404, "the server could not find the requested resource"],
        ["GET", "/api/v1/pods/web-1", 404, "the server could not find the requested resource"],
        ["GET", "/api/v1/namespaces/shop/nodes/n1", 404, "the server could not find the requested resource"],
        ["GET", `${CONFIG_MAPS}/a/log`, 404, "the server could not find the requested resource"],
        ["GET", "/apis/nope.example.com/v1/things", 404, "404 page not found\n"],
        ["GET", "/nope", 404, "404 page not found\n"],
        ["GET", "/api/v1/namespaces/shop/pods/%", 404, "404 page not found\n"],
      ];
      for (const [method, path, status, text] of answers) {
        // deno-lint-ignore no-await-in-loop
        const answer = await call(server, method, path, method === "GET" ? {} : { body: {} });
        const shown = typeof answer.body === "string" ? answer.body : answer.body.message;
        assert.deepEqual([method, path, answer.status, shown], [method, path, status, text]);
      }
      const head = await server.fetch("http://in-memory/api/v1/pods", { method: "HEAD" });
      assert.equal(head.status, 405);
      const late = await server.fetch("http://in-memory/api/v1/pods?timeout=1ns");
      assert.equal(late.status, 504);
    }));

  it("answer HEAD of custom resources as GET, without a body, and leave no watch open", () =>
    withServer({ customResources: [WIDGET_RESOURCE] }, async (server) => {
      const path = "http://in-memory/apis/example.com/v1/namespaces/shop/widgets";
      server.create(WIDGETS, { kind: "Widget", metadata: { name: "one", namespace: "shop" } });
      for (const [rest, status] of [["", 200], ["/one", 200], ["/none", 404], ["?watch=1", 200]] as const) {
        const head = await server.fetch(path + rest, { method: "HEAD" });
        assert.deepEqual([rest, head.status, await head.text()], [rest, status, ""]);
      }
      assert.equal(server.openWatches, 0);
    }));

  it("refuse a media type that the server does not have", () =>
    withServer({}, async (server) => {
      const html = await call(server, "GET", "/api/v1/pods", { headers: { Accept: "text/html" } });
      assert.deepEqual([html.status, html.body.reason], [406, "NotAcceptable"]);
      for (
        const accept of [
          "*/*",
          "application/vnd.kubernetes.protobuf,application/json",
          "text/html, */*;q=0.1",
        ]
      ) {
        // deno-lint-ignore no-await-in-loop
        assert.equal(
          (await call(server, "GET", "/api/v1/pods", { headers: { Accept: accept } })).status,
          200,
          accept,
        );
      }
    }));
});

describe("InMemoryApiServer methods", () => {
  it("write an object as given, including status", () =>
    withServer({}, (server) => {
      const given = pod("web-1", { namespace: "shop", uid: "u-1", phase: "Failed" });
      const created = server.create("v1/pods", given);
      assert.deepEqual([created.metadata.uid, created.status.phase], ["u-1", "Failed"]);
      const updated = server.update("v1/pods", { ...created, status: { phase: "Running" } });
      assert.deepEqual([updated.status, updated.metadata.resourceVersion], [{ phase: "Running" }, "3"]);
      const patched = server.patch<typeof given>("v1/pods", "shop/web-1", {
        status: { phase: null, reason: "x" },
      });
      assert.deepEqual(patched.status, { reason: "x" });
      assert.deepEqual(server.get("v1/pods", "shop/web-1"), patched);
      assert.equal(server.delete("v1/pods", patched).metadata?.resourceVersion, "5");
      assert.equal(server.get("v1/pods", "shop/web-1"), undefined);
    }));

  it("share nothing with their arguments", () =>
    withServer({}, (server) => {
      const given = configMap("a", { data: { k: "v" } });
      server.create("v1/configmaps", given);
      given.data.k = "changed";
      assert.deepEqual(server.get<typeof given>("v1/configmaps", "default/a")?.data, { k: "v" });
    }));

  it("throw the API server's refusals", () =>
    withServer({}, (server) => {
      const created = server.create("v1/configmaps", configMap("a", { data: { k: "1" } }));
      server.update("v1/configmaps", { ...created, data: { k: "2" } });
      assert.throws(() => server.update("v1/configmaps", { ...created, data: { k: "3" } }), isConflict);
      assert.throws(() => server.delete("v1/configmaps", "default/b"), isNotFound);
      assert.throws(() => server.create("v1/configmaps", configMap("a")), (error) =>
        error instanceof StatusError && error.reason === "AlreadyExists");
    }));

  it("suggest a resource for a mistyped name", () =>
    withServer({}, (server) => {
      assert.throws(() => server.list("v1/deployments"), {
        name: "TypeError",
        message:
          'Cannot find the resource "v1/deployments": this server does not serve it; did you mean "apps/v1/deployments"?',
      });
      assert.throws(() => server.get("v1/nodes", "shop/n1"), TypeError);
      assert.throws(() => server.get("v1/nodes", { metadata: {} }), TypeError);
    }));

  it("select by namespace, labels and fields", () =>
    withServer({}, (server) => {
      server.create("v1/pods", pod("a", { namespace: "shop", labels: { app: "web" }, nodeName: "n1" }));
      server.create("v1/pods", pod("b", { namespace: "shop", labels: { app: "db" }, nodeName: "n1" }));
      server.create("v1/pods", pod("a", { namespace: "blog", labels: { app: "web" } }));
      const names = (options: Parameters<typeof server.list>[1]) =>
        server.list("v1/pods", options).items.map(({ metadata }) =>
          `${metadata?.namespace}/${metadata?.name}`
        );
      assert.deepEqual(names({}), ["blog/a", "shop/a", "shop/b"]);
      assert.deepEqual(names({ namespace: "shop" }), ["shop/a", "shop/b"]);
      assert.deepEqual(names({ labelSelector: "app=web" }), ["blog/a", "shop/a"]);
      assert.deepEqual(names({ fieldSelector: "spec.nodeName=n1", labelSelector: "app!=db" }), ["shop/a"]);
    }));
});

it("InMemoryApiServer keeps every digit of an integer beyond 2^53", () =>
  withServer({}, async (server) => {
    const text = '{"metadata":{"name":"a"},"mass":1898130000000000000000000000}';
    await call(server, "POST", CONFIG_MAPS, { body: text });
    const response = await server.fetch(`http://in-memory${CONFIG_MAPS}/a`);
    assert.match(await response.text(), /"mass":1898130000000000000000000000[,}]/);
  }));
