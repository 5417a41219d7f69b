/**
 * Streamed lists of kube-apiserver since 1.37, which compresses them where the client takes gzip: each flush
 * is a gzip member of its own (the feature gate WatchListCompression).
 */

import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";

describe("SharedIndexInformer of a server that compresses streamed lists", () => {
  it("reads the whole list, and the changes after it", async () => {
    const second = Promise.withResolvers<never>();
    let requests = 0;
    let send: (type: string, metadata: object) => void = () => assert.fail("no stream is open");
    const server = createServer((request, response: ServerResponse) => {
      const { searchParams } = new URL(request.url!, "http://server");
      const isStreamed = searchParams.get("sendInitialEvents") === "true";
      const isCompressed = isStreamed && /gzip/.test(request.headers["accept-encoding"] ?? "");
      if (++requests > 1) second.reject(new Error(`the stream did not last: ${request.url} follows`));
      response.writeHead(200, {
        "Content-Type": "application/json",
        ...(isCompressed && { "Content-Encoding": "gzip", "Vary": "Accept-Encoding" }),
      });
      send = (type, metadata) => {
        const event = `${JSON.stringify({ type, object: { kind: "Pod", apiVersion: "v1", metadata } })}\n`;
        response.write(isCompressed ? gzipSync(event) : event);
      };
      for (let i = 1; i <= 3; i++) send("ADDED", { name: `pod-${i}`, resourceVersion: String(i) });
      const annotations = { "k8s.io/initial-events-end": "true" };
      send("BOOKMARK", { resourceVersion: "3", annotations });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const pods = newCluster({ server: `http://127.0.0.1:${port}` }).resource<KubernetesObject>("v1/pods");
    const informer = new SharedIndexInformer(pods);
    const updated = new Promise<void>((resolve) => {
      informer.addEventHandler({ onUpdate: () => resolve() });
    });
    const running = informer.start();
    try {
      await Promise.race([informer.synced(), second.promise]);
      assert.deepEqual(informer.indexer.listKeys().sort(), ["pod-1", "pod-2", "pod-3"]);
      send("MODIFIED", { name: "pod-2", resourceVersion: "4" });
      await Promise.race([updated, second.promise]);
    } finally {
      await running.stop();
      server.close();
      server.closeAllConnections();
    }
  });
});
