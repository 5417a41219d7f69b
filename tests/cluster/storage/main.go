// Command storage runs the conformance suite of kube-apiserver's storage (k8s.io/apiserver/pkg/storage/testing, which its
// watch cache and its etcd store have to pass) over HTTP: reads go to the server under test, writes to the API server.
// It prints what `go test -v` prints. Each call of the suite has a custom resource of its own, which nothing else
// writes; `--define` makes them.
package main

import (
	"context"
	"flag"
	"log"
	"math/rand"
	"regexp"
	"strconv"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

// call is one call of the suite.
type call struct {
	name string
	// Its objects are in no namespace.
	inCluster bool
	// It is for etcd: resourceVersion=0 is the present state, too.
	noCache bool
	run     func(ctx context.Context, t *testing.T, s *store)
}

// onlyStore is a call that needs nothing but the store.
func onlyStore(name string, run func(context.Context, *testing.T, storage.Interface)) call {
	return call{name: name, run: func(ctx context.Context, t *testing.T, s *store) { run(ctx, t, s) }}
}

// What is not here: time to live, transformers of stored bytes, statistics, the form of etcd's keys, progress
// notifications and signals inside a process. kubernetes_storage_test.ts names them.
var calls = []call{
	{name: "Create", run: func(ctx context.Context, t *testing.T, s *store) {
		storagetesting.RunTestCreate(ctx, t, s, func(context.Context, *testing.T, string) {})
	}},
	onlyStore("CreateWithKeyExist", storagetesting.RunTestCreateWithKeyExist),
	onlyStore("Get", storagetesting.RunTestGet),
	onlyStore("UnconditionalDelete", storagetesting.RunTestUnconditionalDelete),
	onlyStore("ConditionalDelete", storagetesting.RunTestConditionalDelete),
	onlyStore("DeleteWithSuggestion", storagetesting.RunTestDeleteWithSuggestion),
	onlyStore("DeleteWithSuggestionAndConflict", storagetesting.RunTestDeleteWithSuggestionAndConflict),
	onlyStore("DeleteWithConflict", storagetesting.RunTestDeleteWithConflict),
	onlyStore("DeleteWithSuggestionOfDeletedObject", storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
	onlyStore("ValidateDeletionWithSuggestion", storagetesting.RunTestValidateDeletionWithSuggestion),
	onlyStore("ValidateDeletionWithOnlySuggestionValid", storagetesting.RunTestValidateDeletionWithOnlySuggestionValid),
	onlyStore("PreconditionalDeleteWithSuggestion", storagetesting.RunTestPreconditionalDeleteWithSuggestion),
	onlyStore("PreconditionalDeleteWithOnlySuggestionPass", storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass),
	{name: "List", run: func(ctx context.Context, t *testing.T, s *store) {
		// As it runs for the watch cache; no list goes to etcd from here.
		storagetesting.RunTestList(ctx, t, s, s.compact, true, storagetesting.NewKubernetesRecorder(nil))
	}},
	{name: "ConsistentList", run: func(ctx context.Context, t *testing.T, s *store) {
		storagetesting.RunTestConsistentList(ctx, t, s, s.increaseVersion, true, true, true)
	}},
	{name: "GetListNonRecursive", run: func(ctx context.Context, t *testing.T, s *store) {
		storagetesting.RunTestGetListNonRecursive(ctx, t, s.increaseVersion, s)
	}},
	onlyStore("GetListRecursivePrefix", storagetesting.RunTestGetListRecursivePrefix),
	{name: "ListContinuation", run: func(ctx context.Context, t *testing.T, s *store) {
		storagetesting.RunTestListContinuation(ctx, t, s, nil)
	}},
	{name: "ListPaginationRareObject", inCluster: true, run: func(ctx context.Context, t *testing.T, s *store) {
		storagetesting.RunTestListPaginationRareObject(ctx, t, s, nil)
	}},
	{name: "ListContinuationWithFilter", run: func(ctx context.Context, t *testing.T, s *store) {
		storagetesting.RunTestListContinuationWithFilter(ctx, t, s, nil)
	}},
	{name: "ListInconsistentContinuation", noCache: true, run: func(ctx context.Context, t *testing.T, s *store) {
		storagetesting.RunTestListInconsistentContinuation(ctx, t, s, s.compact)
	}},
	onlyStore("ListPaging", storagetesting.RunTestListPaging),
	onlyStore("NamespaceScopedList", storagetesting.RunTestNamespaceScopedList),
	{name: "CompactRevision", run: func(ctx context.Context, t *testing.T, s *store) {
		storagetesting.RunTestCompactRevision(ctx, t, s, s.increaseVersion, s.compact)
	}},
	onlyStore("GuaranteedUpdateWithConflict", storagetesting.RunTestGuaranteedUpdateWithConflict),
	onlyStore("GuaranteedUpdateWithSuggestionAndConflict", storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
	onlyStore("Watch", storagetesting.RunTestWatch),
	{name: "WatchFromZero", run: func(ctx context.Context, t *testing.T, s *store) {
		storagetesting.RunTestWatchFromZero(ctx, t, s, nil)
	}},
	onlyStore("DeleteTriggerWatch", storagetesting.RunTestDeleteTriggerWatch),
	onlyStore("WatchFromNonZero", storagetesting.RunTestWatchFromNonZero),
	onlyStore("DelayedWatchDelivery", storagetesting.RunTestDelayedWatchDelivery),
	onlyStore("WatchContextCancel", storagetesting.RunTestWatchContextCancel),
	onlyStore("WatcherTimeout", storagetesting.RunTestWatcherTimeout),
	onlyStore("WatchDeleteEventObjectHaveLatestRV", storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
	{name: "ClusterScopedWatch", inCluster: true, run: func(ctx context.Context, t *testing.T, s *store) {
		storagetesting.RunTestClusterScopedWatch(ctx, t, s)
	}},
	onlyStore("NamespaceScopedWatch", storagetesting.RunTestNamespaceScopedWatch),
	{name: "WatchDispatchBookmarkEvents", run: func(ctx context.Context, t *testing.T, s *store) {
		storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, s, true)
	}},
	onlyStore("OptionalWatchBookmarksWithCorrectResourceVersion",
		storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion),
	onlyStore("SendInitialEventsBackwardCompatibility", storagetesting.RunSendInitialEventsBackwardCompatibility),
	onlyStore("WatchSemantics", storagetesting.RunWatchSemantics),
	onlyStore("WatchSemanticInitialEventsExtended", storagetesting.RunWatchSemanticInitialEventsExtended),
	onlyStore("WatchListMatchSingle", storagetesting.RunWatchListMatchSingle),
}

func main() {
	testing.Init()
	define := flag.String("define", "", "make the custom resources with this kubeconfig, and end")
	writer := flag.String("writer", "", "kubeconfig of the API server")
	reader := flag.String("reader", "", "kubeconfig of the server under test")
	etcd := flag.String("etcd", "", "URL of the API server's etcd")
	flag.Parse()
	if *define != "" {
		if err := defineAll(*define); err != nil {
			log.Fatal(err)
		}
		return
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{*etcd}, DialTimeout: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	var tests []testing.InternalTest
	for _, call := range calls {
		tests = append(tests, testing.InternalTest{Name: call.name, F: func(t *testing.T) {
			s, err := newStore(call, *writer, *reader, client)
			if err != nil {
				t.Fatal(err)
			}
			call.run(context.Background(), t, s)
		}})
	}
	testing.Main(regexp.MatchString, tests, nil, nil)
}

// increaseVersion makes a new version of everything that changes no object.
func (s *store) increaseVersion(ctx context.Context, t *testing.T) int64 {
	response, err := s.etcd.Put(ctx, "increaseRV", strconv.Itoa(rand.Int()))
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

// compact forgets what is older than a version, as API servers do, and waits until the API server has noticed.
func (s *store) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	revision, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	// The key under which API servers tell each other what was compacted.
	if _, err := s.etcd.Put(ctx, "compact_rev_key", resourceVersion); err != nil {
		t.Fatal(err)
	}
	if _, err := s.etcd.Compact(ctx, revision); err != nil {
		t.Fatal(err)
	}
	s.compacted = revision
	exact := everything
	exact.ResourceVersion = strconv.FormatInt(revision-1, 10)
	exact.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	for range 300 {
		if err := s.apiServer().GetList(ctx, "/pods/", exact, &example.PodList{}); err != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("the API server still has version %d, which was compacted", revision-1)
}
