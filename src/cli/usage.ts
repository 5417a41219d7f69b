/** What the program says of itself: its version and the help texts. */

/** The package's version; a test compares it with `deno.json`. */
export const VERSION: string = "0.1.0";

export const LISTWATCH_USAGE: string = `\
listwatch keeps a live, indexed copy of a Kubernetes cluster's state and serves it with Kubernetes' own HTTP API.

Usage:
  listwatch serve [flags]    reflect a cluster and serve the copy
  listwatch version          print the version
  listwatch help serve       print the flags of serve

Try it without a cluster:
  listwatch serve
`;

export const SERVE_USAGE: string = `\
Reflects a cluster with list and watch, and serves the copy: a page for people at /, and the Kubernetes read API.

Usage:
  listwatch serve [flags]

Cluster (by default a small simulated one in this process):
      --kubeconfig FILE    the cluster of a kubeconfig file
      --context NAME       a context of the kubeconfig instead of its current one; without --kubeconfig,
                           of the files in KUBECONFIG, else of ~/.kube/config
      --seed NUMBER        the seed of the simulated cluster; 1 by default

Resources:
  -r, --resource LIST      resources by the names that kubectl accepts, separated by commas:
                           pods,nodes,deploy,deployments.apps,certificates.v1.cert-manager.io
                           by default namespaces, nodes, pods, services, configmaps, and of apps
                           deployments, replicasets, statefulsets and daemonsets
  -n, --namespace LIST     reflect only this namespace, or these; all by default
      --storage FORM       how objects are held: texts (the default), or short-texts (in less memory, for more time per
                           request)
      --snapshot DIR       keep the content in this folder: starts while the API server is away, and serves what it
                           had, marked as stale, until the server is back
      --allow-secrets      allow Secrets among the resources; refused by default
      --drop PATHS         fields that are neither stored nor served: 'spec.containers[].env'; with them goes kubectl's
                           last-applied annotation, which has the whole object in it. By default everything is kept

Server and readers:
      --host ADDRESS       the address to listen on; 127.0.0.1 by default; any other than loopback needs
                           --token-file, --token, --cluster-rbac or --allow-anonymous
  -p, --port NUMBER        the port to listen on; 8787 by default, 0 for any free port
      --token-file FILE    the bearer token of readers, 16 characters or more, in a file; it is read again about every
                           minute (a browser asks for it as a password; kubectl sends it over https only)
      --token TEXT         the token itself, which every user of this machine can read in the list of processes;
                           prefer --token-file or LISTWATCH_TOKEN in the environment, which it replaces
      --cluster-rbac       readers present a token of the reflected cluster, and may read what its RBAC allows
                           (TokenReview and SubjectAccessReview: needs system:auth-delegator)
      --reader-namespaces LIST
                           only these namespaces may be read; requests for all namespaces are refused
      --reader-resources LIST
                           with --reader-namespaces: only these resources may be read
      --allow-anonymous    allow a --host other than loopback without a token: everyone who can reach it may read
      --pass-through       send what is not cached (logs, events, other resources, access reviews) to the API server,
                           with the reader's own token
      --pass-through-writes
                           with --pass-through: writes, too
      --freshness MODE     how fresh reads without a resourceVersion are: consistent (as the API server's, or 504),
                           stale-if-error (the default: the last known state, with a warning, for 504), as-is
      --allow-host NAMES   host names of requests without a token, besides IP addresses (against DNS rebinding)
      --cors-origin ORIGINS
                           pages of these origins may read, such as https://dashboard.example; '*' needs a token
      --tls-cert FILE      serve over https with this certificate; both files are reloaded when they change
      --tls-key FILE       the private key of the certificate
      --max-lag DURATION   /readyz fails when the last contact with the API server was longer ago: 90s, 5m;
                           by default 120s, and 11m for an API server without bookmarks
      --max-watches NUMBER
                           how many watches may be open; 20000 by default. A client (user or address) may have as
                           many as are still free: alone half of them, beside another one a third
      --max-watches-per-client NUMBER
                           how many of these may be one client's at most
      --keep-alive DURATION
                           how long a connection stays open for the next request; 75s by default, which is longer
                           than most load balancers keep theirs
      --shutdown-grace DURATION
                           how long answers that are under way may take after SIGTERM; 10s by default
      --metrics            serve /metrics in the text format of Prometheus
      --access-log FORMAT  print each request on stdout when it has ended: line, or json

  -v, --verbose            print all warnings with their causes, and the stacks of errors
  -h, --help
      --version

The cache reads with its own permissions. Without --cluster-rbac, every reader can read everything in the cache.

Ctrl-C (SIGINT) stops it within a second. SIGTERM lets answers end first (--shutdown-grace): /readyz fails, no
connection is accepted, watches end in good order.
Exit codes: 0 stopped; 1 could not start or continue; 2 wrong command line; 130 had to be killed.
`;
