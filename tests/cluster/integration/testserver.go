// Package testing takes the place of k8s.io/kubernetes/cmd/kube-apiserver/app/testing when Kubernetes' integration tests of
// clients are built (by `go test -overlay`): it starts no API server, but says where one is, in KUBECONFIG.
package testing

import (
	"os"
	"testing"

	"k8s.io/apiserver/pkg/storage/storagebackend"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// TestServerInstanceOptions is what tests may say of the server.
type TestServerInstanceOptions struct {
	EnableCertAuth bool
}

// TestServer is a server that runs.
type TestServer struct {
	ClientConfig *restclient.Config
	TearDownFn   func()
}

// NewDefaultTestServerOptions is what tests say that say nothing.
func NewDefaultTestServerOptions() *TestServerInstanceOptions {
	return &TestServerInstanceOptions{}
}

// StartTestServerOrDie returns the server that runs, whatever it should be.
func StartTestServerOrDie(
	t testing.TB, _ *TestServerInstanceOptions, _ []string, _ *storagebackend.Config,
) *TestServer {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	// As the original: no limit.
	config.QPS = 1000
	config.Burst = 10000
	return &TestServer{ClientConfig: config, TearDownFn: func() {}}
}
