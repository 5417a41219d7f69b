/**
 * The cluster of `scripts/abuse.ts`, a program: an API server in memory with 20,000 pods and reviews of
 * tokens. Prints the path of its kubeconfig, and at the end of its input the number of its reviews.
 *
 * @module
 */

import { pod } from "@listwatch/cache/testing";
import { RealCluster } from "../../tests/cli/real_cluster.ts";

/** The token of attackers that the cluster knows. */
export const TOKEN = "a-token-that-is-known";

/** The token of a good reader. */
export const READER_TOKEN = "a-token-of-a-good-reader";

const USERS: Readonly<Record<string, string>> = { [TOKEN]: "ann", [READER_TOKEN]: "ben" };

const PODS = 20_000;

if (import.meta.main) {
  const cluster = await RealCluster.start();
  for (const namespace of ["shop", "kube-system"]) {
    cluster.server.create("v1/namespaces", { metadata: { name: namespace } });
  }
  for (let i = 0; i < PODS; i++) {
    cluster.server.create("v1/pods", pod(`web-${i}-of-a-deployment-with-a-long-name`, { namespace: "shop" }));
  }
  let tokens = 0;
  cluster.server.intercept(async (request, next) => {
    const { pathname } = new URL(request.url);
    if (pathname.endsWith("/tokenreviews")) {
      tokens++;
      const { spec } = await request.json();
      const username = USERS[spec.token];
      return Response.json({
        status: username === undefined
          ? { authenticated: false }
          : { authenticated: true, user: { username } },
      });
    }
    if (pathname.endsWith("/subjectaccessreviews")) return Response.json({ status: { allowed: true } });
    return await next(request);
  });
  let round = 0;
  setInterval(() => {
    const name = `web-${round++ % PODS}-of-a-deployment-with-a-long-name`;
    cluster.server.update("v1/pods", pod(name, { namespace: "shop", labels: { round: String(round) } }));
  }, 20);
  console.log(JSON.stringify({ kubeconfig: cluster.kubeconfig }));
  await Deno.stdin.read(new Uint8Array(1));
  console.log(JSON.stringify({ tokens }));
}
