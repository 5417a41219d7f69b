// The informer of @kubernetes/client-node on ConfigMaps under the faults. The argument is the path of a kubeconfig. It
// prints one line of JSON when it has synced, and for each line of standard input what it holds and which events it has had
// since the line before. It runs in the folder that has the package.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";

const { CoreV1Api, KubeConfig, makeInformer } = createRequire(resolve("package.json"))(
  "@kubernetes/client-node",
);
const { version } = JSON.parse(readFileSync("node_modules/@kubernetes/client-node/package.json", "utf8"));
const config = new KubeConfig();
config.loadFromFile(process.argv[2]);
const api = config.makeApiClient(CoreV1Api);
const informer = makeInformer(config, "/api/v1/configmaps", () => api.listConfigMapForAllNamespaces());
let events = [];
const summary = (what, { metadata, data }) => [
  what,
  `${metadata.namespace}/${metadata.name}`,
  metadata.resourceVersion,
  data?.value,
];
for (const [event, what] of [["add", "set"], ["update", "set"], ["delete", "delete"]]) {
  informer.on(event, (object) => events.push(summary(what, object)));
}
// As in the examples of its documentation: after an error the program starts it again, 5 seconds later.
informer.on("error", () => setTimeout(() => informer.start(), 5_000));
await informer.start();
console.log(JSON.stringify({ pid: process.pid, version: `${version}, Node ${process.versions.node}` }));
createInterface({ input: process.stdin })
  .on("line", () => {
    console.log(JSON.stringify({ held: informer.list().map((object) => summary("set", object)), events }));
    events = [];
  })
  .on("close", () => process.exit(0));
