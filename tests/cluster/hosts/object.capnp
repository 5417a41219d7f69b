# A Worker with Durable Objects in a workerd of your own, in front of an API server whose authority is private.
# workerd serve object.capnp --experimental --socket-addr http=127.0.0.1:8787
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "worker", worker = .worker),
    # The folder with the databases of the objects.
    (name = "objects", disk = (path = "objects", writable = true)),
    (name = "kubernetes", external = (
      address = "127.0.0.1:6443",
      https = (
        options = (style = host),
        # A name or an address that is in the certificate of the API server.
        certificateHost = "kubernetes.default.svc",
        tlsOptions = (trustedCertificates = [embed "ca.crt"], trustBrowserCas = false),
      ),
    )),
  ],
  sockets = [(name = "http", address = "127.0.0.1:8787", http = (), service = "worker")],
);

const worker :Workerd.Worker = (
  modules = [(name = "worker.mjs", esModule = embed "worker.mjs")],
  compatibilityDate = "2026-07-01",
  bindings = [
    (name = "KUBERNETES", service = "kubernetes"),
    (name = "API_TOKEN", text = embed "token"),
    (name = "PODS", durableObjectNamespace = "Pods"),
  ],
  durableObjectNamespaces = [(className = "Pods", uniqueKey = "pods", enableSql = true)],
  durableObjectStorage = (localDisk = "objects"),
);
