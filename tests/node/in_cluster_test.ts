import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { isUnauthorized, newCluster } from "@listwatch/cache";
import {
  inClusterConfig,
  KubeconfigError,
  loadKubeconfig,
  restConfigFromKubeconfig,
} from "@listwatch/cache/node";
import { FakeClock } from "@listwatch/cache/testing";
import { LogRecorder } from "../log_recorder.ts";

const fixture = (name: string) => readFileSync(new URL(`./fixtures/${name}`, import.meta.url), "utf8");
const folder = mkdtempSync(join(tmpdir(), "listwatch-in-cluster-"));

const write = (name: string, text: string, mode = 0o600) => {
  const path = join(folder, name);
  writeFileSync(path, text, { mode });
  return path;
};

// Accepts one token; the test changes it.
let accepted = "one";
const seen: (string | undefined)[] = [];
const server = createServer(
  { key: fixture("server.key"), cert: fixture("server.crt") },
  (request, response) => {
    seen.push(request.headers.authorization);
    response.statusCode = request.headers.authorization === `Bearer ${accepted}` ? 200 : 401;
    response.setHeader("Content-Type", "application/json");
    response.end('{"gitVersion":"v1.36.3"}');
  },
);
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const port = String((server.address() as AddressInfo).port);
after(() => {
  rmSync(folder, { recursive: true });
  server.close();
  server.closeAllConnections();
});

describe("inClusterConfig", () => {
  const env = { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: port };

  it("uses the token of the service account, and reads it again after a 401 or a minute", async () => {
    write("token", "one\n");
    write("ca.crt", fixture("ca.crt"));
    write("namespace", "shop\n");
    const clock = new FakeClock();
    const config = await inClusterConfig({
      env,
      serviceAccountPath: folder,
      clock,
      logger: new LogRecorder(),
    });
    assert.equal(config.server, `https://127.0.0.1:${port}`);
    assert.equal(config.namespace, "shop");
    const cluster = newCluster(config);
    assert.deepEqual(await cluster.request("/version"), { gitVersion: "v1.36.3" });
    write("token", "two");
    accepted = "two";
    // The last token is refused once, and then read again although its minute is not over.
    await cluster.request("/version");
    write("token", "three");
    accepted = "three";
    await clock.advance(60_000);
    await cluster.request("/version");
    assert.deepEqual(seen.splice(0), ["Bearer one", "Bearer one", "Bearer two", "Bearer three"]);
  });

  it("prefers the namespace in POD_NAMESPACE, and puts an IPv6 address in brackets", async () => {
    const config = await inClusterConfig({
      env: { ...env, KUBERNETES_SERVICE_HOST: "fd00::1", POD_NAMESPACE: "mine" },
      serviceAccountPath: folder,
    });
    assert.equal(config.server, `https://[fd00::1]:${port}`);
    assert.equal(config.namespace, "mine");
  });

  it("uses the system's roots when the CA file is missing, and logs a warning", async () => {
    rmSync(join(folder, "ca.crt"));
    const logger = new LogRecorder();
    await inClusterConfig({ env, serviceAccountPath: folder, logger });
    assert.match(logger.of("warn")[0], /Cannot read the service account's CA, using the system's roots/);
  });

  it("rejects outside of a pod or without a token, with the reason", async () => {
    await assert.rejects(
      inClusterConfig({ env: {} }),
      (error) =>
        error instanceof KubeconfigError && /KUBERNETES_SERVICE_HOST .* is this a pod\?/.test(error.message),
    );
    await assert.rejects(inClusterConfig({ env, serviceAccountPath: join(folder, "no") }), KubeconfigError);
  });
});

describe("restConfigFromKubeconfig with a credential plugin", () => {
  it("runs the plugin again after the server has refused its token", async () => {
    const tokenFile = write("plugin.token", "old");
    const command = write(
      "plugin",
      `#!/bin/sh\nprintf '{"apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s"}}' "$(cat ${tokenFile})"\n`,
      0o700,
    );
    const path = write(
      "config",
      JSON.stringify({
        "current-context": "c",
        contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
        clusters: [{
          name: "c",
          cluster: {
            server: `https://127.0.0.1:${port}`,
            "certificate-authority-data": btoa(fixture("ca.crt")),
          },
        }],
        users: [{
          name: "u",
          user: {
            exec: { apiVersion: "client.authentication.k8s.io/v1", command, interactiveMode: "IfAvailable" },
          },
        }],
      }),
    );
    accepted = "old";
    const cluster = newCluster(await restConfigFromKubeconfig(await loadKubeconfig({ path })));
    await cluster.request("/version");
    writeFileSync(tokenFile, "new");
    accepted = "new";
    await cluster.request("/version");
    assert.deepEqual(seen.splice(0), ["Bearer old", "Bearer old", "Bearer new"]);
    accepted = "nothing";
    await assert.rejects(cluster.request("/version"), isUnauthorized);
    assert.deepEqual(seen.splice(0), ["Bearer new"]);
  });
});
