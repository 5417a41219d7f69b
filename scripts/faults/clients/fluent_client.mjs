// The Watch of kubernetes-fluent-client on ConfigMaps under the faults, with its default options. It has no store of its
// own for programs, so this one keeps what its function receives: by uid, as the delete of an object may follow the add of
// the next one of its name. It takes the cluster from KUBECONFIG, prints one line of
// JSON when it watches, and for each line of standard input what it holds and which events it has had since the line
// before. It runs in the folder that has the package.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const folder = resolve("node_modules/kubernetes-fluent-client");
const { K8s, kind } = await import(pathToFileURL(`${folder}/dist/index.js`).href);
const { version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
const held = new Map();
let events = [];
const watcher = K8s(kind.ConfigMap).Watch(({ metadata, data }, phase) => {
  // An event of type ERROR has a Status.
  if (metadata?.name === undefined) return;
  const key = `${metadata.namespace}/${metadata.name}`;
  const what = phase === "DELETED" ? "delete" : "set";
  const seen = [what, key, metadata.resourceVersion, data?.value];
  events.push(seen);
  if (what === "delete") held.delete(metadata.uid);
  else held.set(metadata.uid, seen);
});
await watcher.start();
console.log(JSON.stringify({ pid: process.pid, version: `${version}, Node ${process.versions.node}` }));
createInterface({ input: process.stdin })
  .on("line", () => {
    console.log(JSON.stringify({ held: [...held.values()], events }));
    events = [];
  })
  .on("close", () => process.exit(0));
