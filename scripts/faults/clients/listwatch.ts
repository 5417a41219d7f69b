/**
 * This library's informer of ConfigMaps under the faults, with its default options. The argument is the path
 * of a kubeconfig. It prints one line of JSON when it has synced, and for each line of standard input what it
 * holds and which events it has had since the line before. Runs on Deno and Node.
 *
 * @module
 */

import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
import { createTlsFetch } from "@listwatch/cache/node";
import { readFileSync } from "node:fs";
import process from "node:process";
import { createInterface } from "node:readline";

type ConfigMap = KubernetesObject & { readonly data?: Readonly<Record<string, string>> };

const [path] = process.argv.slice(2);
// The kubeconfig is JSON, and read here: a bundle for Node has no parser of YAML.
const { clusters: [{ cluster: { server, "certificate-authority": authority } }] } = JSON.parse(
  readFileSync(path, "utf8"),
);
const cluster = newCluster({ server, fetch: createTlsFetch({ ca: readFileSync(authority, "utf8") }) });
const informer = new SharedIndexInformer(cluster.resource<ConfigMap>("v1/configmaps"), {});
let events: unknown[] = [];
const summary = (what: string, { metadata, data }: ConfigMap) => [
  what,
  `${metadata?.namespace}/${metadata?.name}`,
  metadata?.resourceVersion,
  data?.value,
];
informer.addEventHandler({
  onAdd: (object) => void events.push(summary("set", object)),
  onUpdate: (_before, object) => void events.push(summary("set", object)),
  onDelete: ({ key }) => void events.push(["delete", key]),
});
informer.start();
await informer.synced();
const { Deno } = globalThis as { readonly Deno?: { readonly version: { readonly deno: string } } };
// The version of the runtime: the library is this one.
const version = Deno?.version.deno ?? process.versions.node;
console.log(JSON.stringify({ pid: process.pid, version }));
createInterface({ input: process.stdin })
  .on("line", () => {
    const held = informer.indexer.list().map((object) => summary("set", object));
    console.log(JSON.stringify({ held, events }));
    events = [];
  })
  .on("close", () => process.exit(0));
