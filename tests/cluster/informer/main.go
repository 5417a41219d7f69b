// Command informer runs client-go's informers of ConfigMaps on a cache, and compares them with the API server: a typed
// one, which prefers protobuf, a dynamic one, and one of metadata. By default they stream their lists;
// KUBE_FEATURE_WatchListClient=false makes them list and watch.
//
// It prints one line of JSON when all have synced, and one for each line of standard input, which says what to do.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// Longer than a reflector's longest pause between two tries: 30 s, and up to as much again at random
// (https://github.com/kubernetes/client-go/blob/master/tools/cache/reflector.go).
const compareTimeout = 90 * time.Second

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

type options struct {
	server, kubeconfig, labelSelector string
}

func main() {
	var opts options
	flag.StringVar(&opts.server, "server", "", "URL of the cache")
	flag.StringVar(&opts.kubeconfig, "kubeconfig", "", "kubeconfig of the API server")
	flag.StringVar(&opts.labelSelector, "label-selector", "", "which ConfigMaps")
	flag.Parse()
	if err := run(context.Background(), opts); err != nil {
		fmt.Fprintf(os.Stderr, "informer: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts options) error {
	direct, err := clientcmd.BuildConfigFromFlags("", opts.kubeconfig)
	if err != nil {
		return err
	}
	// All requests of a comparison at once.
	direct.QPS = -1
	watched, err := newWitnesses(&rest.Config{Host: opts.server, QPS: -1}, direct, opts.labelSelector)
	if err != nil {
		return err
	}
	for _, witness := range watched {
		go witness.informer.RunWithContext(ctx)
	}
	for _, witness := range watched {
		if !cache.WaitForCacheSync(ctx.Done(), witness.registration.HasSynced) {
			return fmt.Errorf("the %s informer did not sync", witness.name)
		}
	}
	answer(map[string]any{"synced": true})

	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch line := lines.Text(); line {
		case "compare":
			answer(compare(ctx, watched))
		case "check":
			answer(check(ctx, opts))
		default:
			answer(map[string]any{"error": fmt.Sprintf("unknown command %q: use compare or check", line)})
		}
	}
	return lines.Err()
}

func answer(value any) {
	line, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", line)
}

// witness is an informer, the fold of what its handler received, and the way to the same objects on the API server.
type witness struct {
	name         string
	informer     cache.SharedIndexInformer
	registration cache.ResourceEventHandlerRegistration
	list         func(context.Context) (runtime.Object, error)

	mutex  sync.Mutex
	fold   map[string]runtime.Object
	events map[string]int
	faults []string
}

func newWitnesses(cached, direct *rest.Config, labelSelector string) ([]*witness, error) {
	tweak := func(options *metav1.ListOptions) { options.LabelSelector = labelSelector }
	listOptions := metav1.ListOptions{LabelSelector: labelSelector}

	typed, err := kubernetes.NewForConfig(cached)
	if err != nil {
		return nil, err
	}
	directTyped, err := kubernetes.NewForConfig(direct)
	if err != nil {
		return nil, err
	}
	unstructured, err := dynamic.NewForConfig(cached)
	if err != nil {
		return nil, err
	}
	directUnstructured, err := dynamic.NewForConfig(direct)
	if err != nil {
		return nil, err
	}
	partial, err := metadata.NewForConfig(cached)
	if err != nil {
		return nil, err
	}
	directPartial, err := metadata.NewForConfig(direct)
	if err != nil {
		return nil, err
	}
	witnesses := []*witness{
		{
			name: "typed",
			informer: informers.NewSharedInformerFactoryWithOptions(typed, 0, informers.WithTweakListOptions(tweak)).
				Core().V1().ConfigMaps().Informer(),
			list: func(ctx context.Context) (runtime.Object, error) {
				return directTyped.CoreV1().ConfigMaps("").List(ctx, listOptions)
			},
		},
		{
			name: "dynamic",
			informer: dynamicinformer.NewFilteredDynamicSharedInformerFactory(unstructured, 0, "", tweak).
				ForResource(configMaps).Informer(),
			list: func(ctx context.Context) (runtime.Object, error) {
				return directUnstructured.Resource(configMaps).List(ctx, listOptions)
			},
		},
		{
			name: "metadata",
			informer: metadatainformer.NewFilteredSharedInformerFactory(partial, 0, "", tweak).
				ForResource(configMaps).Informer(),
			list: func(ctx context.Context) (runtime.Object, error) {
				return directPartial.Resource(configMaps).List(ctx, listOptions)
			},
		},
	}
	for _, one := range witnesses {
		one.fold = map[string]runtime.Object{}
		one.events = map[string]int{}
		one.registration, err = one.informer.AddEventHandler(one)
		if err != nil {
			return nil, err
		}
	}
	return witnesses, nil
}

func (w *witness) OnAdd(object any, _ bool) {
	w.record("add", object, func(key string) bool { return w.fold[key] == nil })
}

func (w *witness) OnUpdate(before, object any) {
	w.record("update", object, func(key string) bool { return w.fold[key] == before })
}

func (w *witness) OnDelete(object any) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil || w.fold[key] == nil {
		w.faults = append(w.faults, fmt.Sprintf("delete of %s, which was not there (%v)", key, err))
	}
	delete(w.fold, key)
	w.events["delete"]++
}

func (w *witness) record(event string, object any, isSound func(key string) bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	key, err := cache.MetaNamespaceKeyFunc(object)
	if err != nil || !isSound(key) {
		w.faults = append(w.faults, fmt.Sprintf("%s of %s does not fit what was received before (%v)", event, key, err))
	}
	w.fold[key] = object.(runtime.Object)
	w.events[event]++
}

type comparison struct {
	Objects    int                       `json:"objects"`
	Events     map[string]map[string]int `json:"events"`
	Difference string                    `json:"difference,omitempty"`
	Faults     []string                  `json:"faults"`
}

// compare waits until each store and each fold equals what the API server lists.
func compare(ctx context.Context, witnesses []*witness) comparison {
	deadline := time.Now().Add(compareTimeout)
	result := comparison{Events: map[string]map[string]int{}, Faults: []string{}}
	for _, witness := range witnesses {
		for {
			objects, difference := witness.difference(ctx)
			result.Objects = objects
			result.Difference = difference
			if difference == "" || time.Now().After(deadline) {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		witness.mutex.Lock()
		result.Events[witness.name] = maps.Clone(witness.events)
		result.Faults = append(result.Faults, witness.faults...)
		witness.mutex.Unlock()
		if result.Difference != "" {
			break
		}
	}
	return result
}

func (w *witness) difference(ctx context.Context) (objects int, difference string) {
	list, err := w.list(ctx)
	if err != nil {
		return 0, err.Error()
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return 0, err.Error()
	}
	expected := map[string]runtime.Object{}
	for _, item := range items {
		key, err := cache.MetaNamespaceKeyFunc(item)
		if err != nil {
			return 0, err.Error()
		}
		expected[key] = item
	}
	stored := map[string]runtime.Object{}
	for _, object := range w.informer.GetStore().List() {
		key, _ := cache.MetaNamespaceKeyFunc(object)
		stored[key] = object.(runtime.Object)
	}
	if text := differenceOf(stored, expected); text != "" {
		return len(items), fmt.Sprintf("the store of the %s informer: %s", w.name, text)
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if text := differenceOf(w.fold, expected); text != "" {
		return len(items), fmt.Sprintf("the fold of the %s informer: %s", w.name, text)
	}
	return len(items), ""
}

func differenceOf(actual, expected map[string]runtime.Object) string {
	for _, key := range slices.Sorted(maps.Keys(expected)) {
		if actual[key] == nil {
			return fmt.Sprintf("%s is missing", key)
		}
		if !equality.Semantic.DeepEqual(withoutType(actual[key]), withoutType(expected[key])) {
			return fmt.Sprintf("%s is %s, and not %s", key, text(actual[key]), text(expected[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(actual)) {
		if expected[key] == nil {
			return fmt.Sprintf("%s is there, and was deleted", key)
		}
	}
	return ""
}

// withoutType: lists of typed objects have no kind in their items, watches have.
func withoutType(object runtime.Object) runtime.Object {
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return object
}

func text(object runtime.Object) string {
	line, _ := json.Marshal(object)
	return string(line[:min(len(line), 600)])
}
