// The informer of @kubernetes/client-node on ConfigMaps. The argument is the kubeconfig of an API server, or the URL of a
// cache. It prints one line of JSON when it has started, and for each line of standard input what it holds. It runs in
// the folder that has the package.
import { createRequire } from "node:module";
import { resolve } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";

const { CoreV1Api, KubeConfig, makeInformer } = createRequire(resolve("package.json"))(
  "@kubernetes/client-node",
);
const config = new KubeConfig();
const [target] = process.argv.slice(2);
if (target.startsWith("http:")) {
  config.loadFromOptions({
    // Without `skipTLSVerify` it refuses plain HTTP.
    clusters: [{ name: "cache", server: target, skipTLSVerify: true }],
    users: [{ name: "cache" }],
    contexts: [{ name: "cache", cluster: "cache", user: "cache" }],
    currentContext: "cache",
  });
} else config.loadFromFile(target);
const api = config.makeApiClient(CoreV1Api);
const informer = makeInformer(config, "/api/v1/configmaps", () => api.listConfigMapForAllNamespaces());
// After an error the program starts it again, as its documentation says.
informer.on("error", () => setTimeout(() => informer.start(), 500));
await informer.start();
console.log(JSON.stringify({ started: true }));
createInterface({ input: process.stdin })
  .on("line", () =>
    console.log(JSON.stringify({
      informer: informer.list().map((
        { metadata: { namespace, name, uid, resourceVersion, labels }, data },
      ) => ({
        metadata: { namespace, name, uid, resourceVersion, labels },
        data,
      })),
    })))
  .on("close", () => process.exit(0));
