/** A kubeconfig of one cluster, for programs that are started by tests, benchmarks and tasks. */
export function kubeconfigOf(
  cluster: { readonly server: string; readonly "certificate-authority"?: string },
  user: { readonly token?: string } = {},
): string {
  const name = "cluster";
  // JSON is YAML.
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
  });
}
