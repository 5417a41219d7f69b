/**
 * The help texts.
 * @module
 */

/** `listwatch --help`. */
export const LISTWATCH_USAGE: string = `\
listwatch: a live, indexed copy of a Kubernetes cluster's state, served over HTTP in Kubernetes' own protocol.

Usage:
  listwatch serve [flags]    reflect a cluster and serve the copy
  listwatch version          tell the version
  listwatch help serve       tell the flags of serve

Try first, without any cluster:
  listwatch serve
`;

/** `listwatch serve --help`. */
export const SERVE_USAGE: string = `\
Reflects a cluster with list and watch, and serves the copy: a page for people at /, beside it the Kubernetes read API.

Usage:
  listwatch serve [flags]

Which cluster (without these flags: a small living one that runs inside this program):
      --kubeconfig FILE    the cluster that a kubeconfig file names
      --context NAME       one of the kubeconfig's contexts instead of its current one;
                           without --kubeconfig: of the files in KUBECONFIG, else ~/.kube/config
      --seed NUMBER        what the embedded cluster's chance begins with; 1 by default

What of it:
  -r, --resource LIST      resources by the names that kubectl knows, separated by commas:
                           pods,nodes,deploy,deployments.apps,certificates.v1.cert-manager.io
                           by default namespaces, nodes, pods, services, configmaps and the usual apps
  -n, --namespace NAME     only this namespace's objects; all namespaces by default
      --allow-secrets      let Secrets be among the resources; they are refused otherwise
      --drop PATHS         fields that are not held, and so not served: 'spec.containers[].env'

Who may read it:
      --host ADDRESS       where to listen; 127.0.0.1 by default: this machine only
  -p, --port NUMBER        8787 by default; 0 takes any free port
      --token TEXT         readers must present this bearer token of 16 characters or more (a browser asks for it
                           as a password); the LISTWATCH_TOKEN variable stands in for the flag; kubectl sends
                           tokens over https only
      --token-file FILE    the same from a file, which is read again about every minute
      --cluster-rbac       readers present a token of the reflected cluster, and may read what its own RBAC lets
                           them read (TokenReview, SubjectAccessReview: needs system:auth-delegator)
      --reader-namespaces LIST
                           only these namespaces may be read; requests for all namespaces are refused
      --reader-resources LIST
                           with --reader-namespaces: only these of the resources
      --allow-anonymous    let anyone who reaches a --host beyond this machine read, without a token
      --allow-host NAMES   where no token is asked for: names by which readers may call this server, besides
                           addresses (a page elsewhere could otherwise read under a name of its own)
      --tls-cert FILE      serve over https with this certificate; both files are read again when they change
      --tls-key FILE       the certificate's key
      --access-log FORMAT  tell each request on stdout when it ended: line, or json

  -v, --verbose            also tell what the parts report, and where errors came from
  -h, --help
      --version

The cache reads with its own permissions; without --cluster-rbac whoever may read sees all it holds.

Ctrl-C (SIGINT) or SIGTERM ends it within a second.
Exit codes: 0 ended as asked; 1 could not start or go on; 2 the command was wrong; 130 the end had to be forced.
`;
