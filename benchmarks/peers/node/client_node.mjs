/**
 * The contestant `@kubernetes/client-node`: its informer, with the list function of its own documentation.
 *
 * @module
 */

import { CoreV1Api, KubeConfig, makeInformer } from "@kubernetes/client-node";
import { readFileSync } from "node:fs";
import { measure } from "../../contestants/harness.ts";

const { version } = JSON.parse(
  readFileSync(new URL("node_modules/@kubernetes/client-node/package.json", import.meta.url), "utf8"),
);

await measure(({ server, objects }) => {
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [{ name: "benchmark", server, skipTLSVerify: true }],
    users: [{ name: "benchmark" }],
    contexts: [{ name: "benchmark", cluster: "benchmark", user: "benchmark" }],
    currentContext: "benchmark",
  });
  const api = config.makeApiClient(CoreV1Api);
  const informer = makeInformer(config, "/api/v1/pods", () => api.listPodForAllNamespaces());
  const namespaces = new Set();
  let someNode = "";
  const counts = { added: 0, updated: 0, deleted: 0 };
  return {
    version,
    async start(hooks) {
      const filled = Promise.withResolvers();
      informer.on("add", (pod) => {
        namespaces.add(pod.metadata.namespace);
        someNode = pod.spec.nodeName;
        // Its start() waits for the watch besides; what counts here is that the store is filled.
        if (++counts.added === objects) filled.resolve();
      });
      informer.on("update", (pod) => {
        counts.updated++;
        void `${pod.metadata.namespace}/${pod.metadata.name}`;
        hooks.onUpdate(pod.metadata.resourceVersion);
      });
      informer.on("delete", () => counts.deleted++);
      informer.on("error", filled.reject);
      informer.start().catch(filled.reject);
      await filled.promise;
    },
    size: () => informer.list().length,
    // It has no index by node: each look-up is a scan. One is enough: all of them would take minutes.
    lookUpNodes() {
      return informer.list().filter((pod) => pod.spec.nodeName === someNode).length;
    },
    lookUpNamespaces() {
      let found = 0;
      for (const namespace of namespaces) found += informer.list(namespace).length;
      return found;
    },
    sample: () => informer.list()[0],
  };
});
