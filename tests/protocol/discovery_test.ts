import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ApiResource } from "../../src/protocol/api_resource.ts";
import {
  answerDiscovery,
  compareVersions,
  type DiscoveryAnswer,
  type DiscoveryRequest,
} from "../../src/protocol/discovery.ts";

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

const resource = (
  group: string,
  version: string,
  kind: string,
  more: Partial<ApiResource> = {},
): ApiResource => ({
  group,
  version,
  kind,
  resource: `${kind.toLowerCase()}s`,
  namespaced: true,
  ...more,
});

const RESOURCES: readonly ApiResource[] = [
  resource("", "v1", "Pod", { shortNames: ["po"], categories: ["all"] }),
  resource("", "v1", "Node", { namespaced: false, shortNames: [], categories: [] }),
  resource("apps", "v1", "Deployment"),
  resource("example.com", "v1beta1", "Widget"),
  resource("example.com", "v1", "Widget", {
    verbs: ["get", "list"],
    subresources: {
      status: true,
      scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" },
    },
  }),
  resource("example.com", "v1", "Gadget"),
];

// deno-lint-ignore no-explicit-any -- of any shape
type Json = any;

const ask = (path: string, request: Partial<DiscoveryRequest> = {}) =>
  answerDiscovery(RESOURCES, { method: "GET", path, ...request });
const codeOf = (path: string, request?: Partial<DiscoveryRequest>) => {
  const answer = ask(path, request);
  return answer === undefined
    ? undefined
    : "code" in answer
    ? answer.code
    : (answer as DiscoveryAnswer).status;
};
const documentOf = (path: string, request?: Partial<DiscoveryRequest>): Json =>
  (ask(path, request) as DiscoveryAnswer).document;

describe("answerDiscovery", () => {
  it("answers the paths of discovery, with slashes at their end too, and no others", () => {
    for (
      const path of [
        "/api",
        "/api/",
        "/api/v1",
        "/apis/",
        "/apis/apps",
        "/apis/apps/v1",
        "/apis/example.com/v1/",
      ]
    ) {
      assert.equal(codeOf(path), 200, path);
    }
    for (
      const path of [
        "/",
        "/version",
        "/api/v2",
        "/api/v1beta1",
        "/api/v1/pods",
        "/other/apps",
        "/other/apps/v1",
        "/apis//",
        "/apis//v1",
        "/apis/none",
        "/apis/apps/v2",
        "/apis/apps/v1/deployments",
        "/apis/example.com/v1/widgets/a",
      ]
    ) {
      assert.equal(codeOf(path), undefined, path);
    }
    assert.equal((answerDiscovery([], { method: "GET", path: "/api/v1" }) as DiscoveryAnswer).status, 200);
    const later = answerDiscovery([resource("", "v2", "Pod")], { method: "GET", path: "/api/v2" });
    assert.equal((later as DiscoveryAnswer).status, 200);
  });

  it("refuses what an API server refuses: other methods of its own documents, and types that it does not write", () => {
    const codes = (request: Partial<DiscoveryRequest>) =>
      ["/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/apis/example.com/v1"].map((path) =>
        codeOf(path, request)
      );
    assert.deepEqual(codes({ method: "POST" }), [405, 405, 200, 200, 405, 200]);
    assert.deepEqual(codes({ accept: "text/html" }), [406, 406, 406, 406, 406, 406]);
    assert.deepEqual(codes({ accept: "text/html, */*" }), [200, 200, 200, 200, 200, 200]);
    assert.deepEqual(codes({ accept: "application/*" }), [406, 406, 200, 200, 406, 200]);
  });

  it("lists groups with their versions, the preferred one first", () => {
    const { groups } = documentOf("/apis");
    assert.deepEqual(groups.map(({ name }: Json) => name), ["apps", "example.com"]);
    assert.deepEqual(groups[1], {
      name: "example.com",
      versions: [
        { groupVersion: "example.com/v1", version: "v1" },
        { groupVersion: "example.com/v1beta1", version: "v1beta1" },
      ],
      preferredVersion: { groupVersion: "example.com/v1", version: "v1" },
    });
    assert.deepEqual(documentOf("/apis"), { kind: "APIGroupList", apiVersion: "v1", groups });
    assert.deepEqual(documentOf("/apis/apps"), { kind: "APIGroup", apiVersion: "v1", ...groups[0] });
    assert.deepEqual(ask("/api", { serverAddress: "h:1", accept: "application/json;pretty=1" }), {
      status: 200,
      headers: { "Cache-Control": "no-cache, private", "Vary": "Accept" },
      mediaType: "application/json",
      parameters: "",
      pretty: true,
      document: {
        kind: "APIVersions",
        versions: ["v1"],
        serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress: "h:1" }],
      },
    });
  });

  it("lists the resources of a version, with what each may be requested for", () => {
    const core = documentOf("/api/v1");
    assert.deepEqual([core.apiVersion, core.groupVersion], [undefined, "v1"]);
    const [pod] = core.resources;
    assert.deepEqual(pod, {
      name: "pods",
      singularName: "pod",
      namespaced: true,
      kind: "Pod",
      verbs: ["get", "list", "watch"],
      shortNames: ["po"],
      categories: ["all"],
    });
    const node = core.resources.find(({ name }: Json) => name === "nodes");
    assert.deepEqual(Object.keys(node), ["name", "singularName", "namespaced", "kind", "verbs"]);
    const { kind, apiVersion, resources } = documentOf("/apis/example.com/v1");
    assert.deepEqual([kind, apiVersion], ["APIResourceList", "v1"]);
    assert.deepEqual(resources.slice(1, 3), [
      { name: "widgets/status", singularName: "", namespaced: true, kind: "Widget", verbs: ["get"] },
      {
        name: "widgets/scale",
        singularName: "",
        namespaced: true,
        group: "autoscaling",
        version: "v1",
        kind: "Scale",
        verbs: ["get"],
      },
    ]);
    assert.deepEqual(
      resources.map(({ name, kind, group, version, verbs }: Json) => [name, kind, group, version, verbs]),
      [
        ["widgets", "Widget", undefined, undefined, ["get", "list"]],
        ["widgets/status", "Widget", undefined, undefined, ["get"]],
        ["widgets/scale", "Scale", "autoscaling", "v1", ["get"]],
        ["gadgets", "Gadget", undefined, undefined, ["get", "list", "watch"]],
      ],
    );
  });

  it("writes the aggregated document of a root where that is accepted, whatever else is", () => {
    const answer = ask("/apis", { accept: `application/json;q=1,${AGGREGATED};q=0.1` }) as DiscoveryAnswer;
    assert.equal(answer.parameters, ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    const { items } = answer.document as Json;
    assert.deepEqual(items.map(({ metadata }: Json) => metadata), [{ name: "apps" }, {
      name: "example.com",
    }]);
    const [widget] = items[1].versions[0].resources;
    assert.deepEqual(widget.responseKind, { group: "example.com", version: "v1", kind: "Widget" });
    assert.deepEqual(widget.verbs, ["get", "list"]);
    assert.deepEqual(widget.subresources.map(({ responseKind }: Json) => responseKind), [
      { group: "example.com", version: "v1", kind: "Widget" },
      { group: "autoscaling", version: "v1", kind: "Scale" },
    ]);
    for (const path of ["/api", "/api/", "/api//"]) {
      const [core, ...others] = documentOf(path, { accept: AGGREGATED }).items;
      assert.deepEqual([core.metadata, others], [{}, []], path);
      const scopes = core.versions[0].resources.map(({ scope, responseKind }: Json) => [scope, responseKind]);
      assert.deepEqual(scopes, [
        ["Namespaced", { group: "", version: "", kind: "Pod" }],
        ["Cluster", { group: "", version: "", kind: "Node" }],
      ]);
    }
    const other = AGGREGATED.replace("v=v2", "v=v2beta1");
    for (const accept of [other, AGGREGATED.replace("GroupDiscoveryList", "Group")]) {
      assert.equal(codeOf("/apis", { accept }), 406, accept);
    }
    for (const accept of [`${other},application/json`, "application/json"]) {
      assert.equal(documentOf("/apis", { accept }).kind, "APIGroupList", accept);
    }
  });

  it("writes all members of an aggregated document, those of a definition where that is wanted", () => {
    const definition = {
      printerColumns: [],
      fieldSelectors: [".spec.color"],
      deprecationWarning: "it is old",
    } as unknown as Partial<ApiResource>;
    const resources = [
      resource("apps", "v1", "Deployment", {
        ...definition,
        singularName: "one",
        subresources: {
          status: true,
          scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" },
        },
      }),
      resource("example.com", "v1", "Widget", { ...definition, shortNames: ["wd"], categories: ["all"] }),
    ];
    const { document } = answerDiscovery(resources, {
      method: "GET",
      path: "/apis",
      accept: AGGREGATED,
      definesCustom: true,
    }) as DiscoveryAnswer;
    const ofGroup = (name: string, resource: object) => ({
      metadata: { name },
      versions: [{ version: "v1", resources: [resource], freshness: "Current" }],
    });
    assert.deepEqual(JSON.parse(JSON.stringify(document)), {
      kind: "APIGroupDiscoveryList",
      apiVersion: "apidiscovery.k8s.io/v2",
      metadata: {},
      items: [
        ofGroup("apps", {
          resource: "deployments",
          responseKind: { group: "", version: "", kind: "Deployment" },
          scope: "Namespaced",
          singularResource: "one",
          verbs: ["get", "list", "watch"],
          subresources: [
            {
              subresource: "scale",
              responseKind: { group: "autoscaling", version: "v1", kind: "Scale" },
              verbs: ["get"],
            },
            {
              subresource: "status",
              responseKind: { group: "", version: "", kind: "Deployment" },
              verbs: ["get"],
            },
          ],
        }),
        ofGroup("example.com", {
          resource: "widgets",
          responseKind: { group: "example.com", version: "v1", kind: "Widget" },
          scope: "Namespaced",
          singularResource: "widget",
          verbs: ["get", "list", "watch"],
          shortNames: ["wd"],
          categories: ["all"],
          definition,
        }),
      ],
    });
  });

  it("says what definitions do, and which parameters a cache takes, only where that is wanted", () => {
    const [, { versions: [{ resources }] }] = documentOf("/apis", {
      accept: AGGREGATED,
      definesCustom: true,
      parametersOf: ({ kind }) => kind === "Gadget" ? ["filter"] : undefined,
    }).items;
    const [widget, gadget] = resources;
    assert.equal(widget.definition.subresources.status, true);
    assert.deepEqual([gadget.definition, widget["x-listwatch"]], [undefined, undefined]);
    assert.deepEqual(gadget["x-listwatch"], { parameters: ["filter"] });
    const [, { versions: [plain] }] = documentOf("/apis", { accept: AGGREGATED }).items;
    assert.equal(plain.resources[0].definition, undefined);
  });

  it("answers 304 for the tag of an aggregated document, which is another one for each type", () => {
    const mediaTypes = ["application/json", "application/yaml"] as const;
    const tagOf = (accept: string) => (ask("/apis", { accept, mediaTypes }) as DiscoveryAnswer).headers.ETag;
    const json = tagOf(AGGREGATED);
    assert.notEqual(json, tagOf(AGGREGATED.replace("json", "yaml")));
    const same = ask("/apis", { accept: AGGREGATED, ifNoneMatch: json }) as DiscoveryAnswer;
    const { mediaType, parameters } = ask("/apis", { accept: AGGREGATED }) as DiscoveryAnswer;
    assert.deepEqual([same.status, same.document, same.headers.ETag], [304, null, json]);
    assert.deepEqual([same.mediaType, same.parameters], [mediaType, parameters]);
    assert.equal(same.headers.Vary, "Accept");
    assert.equal((ask("/apis", { ifNoneMatch: json }) as DiscoveryAnswer).status, 200);
  });
});

describe("compareVersions", () => {
  it("puts stable versions before beta and alpha ones, the highest first, and others behind them by name", () => {
    const expected = [
      "v10",
      "v2",
      "v1",
      "v2beta2",
      "v2beta1",
      "v1beta10",
      "v1beta2",
      "v3alpha1",
      "v1alpha1",
      "a",
      "b",
    ];
    for (let turn = 0; turn < expected.length; turn++) {
      const turned = [...expected.slice(turn), ...expected.slice(0, turn)].reverse();
      assert.deepEqual(turned.sort(compareVersions), expected);
    }
  });
});
