// Package integration is used by Kubernetes' integration tests of clients in place of the package that starts an API server for
// each of them: it starts none, but says where one is, in KUBECONFIG. scripts/lib/cluster_build.ts builds them with it.
package integration

import (
	"os"
	"testing"

	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	// What the tests import besides, so that it is in go.mod.
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/stretchr/testify/require"
	_ "golang.org/x/net/websocket"
	_ "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	_ "k8s.io/klog/v2/ktesting"
	_ "k8s.io/kubernetes/test/integration/framework"
	_ "k8s.io/sample-apiserver/pkg/apis/wardle/v1alpha1"
	_ "k8s.io/utils/ptr"
)

// TestServerInstanceOptions is what a test may require of its server.
type TestServerInstanceOptions struct {
	EnableCertAuth bool
}

// TestServer is a server that runs.
type TestServer struct {
	ClientConfig *rest.Config
	TearDownFn   func()
}

// NewDefaultTestServerOptions requires nothing.
func NewDefaultTestServerOptions() *TestServerInstanceOptions {
	return &TestServerInstanceOptions{}
}

// StartTestServerOrDie returns the server that runs, whatever is required.
func StartTestServerOrDie(
	t testing.TB, _ *TestServerInstanceOptions, _ []string, _ *storagebackend.Config,
) *TestServer {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	// All requests at once, as with the server that they start.
	config.QPS = -1
	return &TestServer{ClientConfig: config, TearDownFn: func() {}}
}
