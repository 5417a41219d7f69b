package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/consistencydetector"
)

const checkTimeout = compareTimeout

// check runs client-go's tools that need a server: they read from the cache, and write to the API server. Nothing else
// may write meanwhile. The checks that kube-apiserver's own integration tests make of a watch list and of restarted
// watches: test/integration/apimachinery/watchlist_test.go and watch_restart_test.go.
func check(ctx context.Context, opts options) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	results := map[string]string{}
	direct, err := clientcmd.BuildConfigFromFlags("", opts.kubeconfig)
	if err != nil {
		return map[string]string{"setup": err.Error()}
	}
	reader := kubernetes.NewForConfigOrDie(&rest.Config{Host: opts.server, QPS: -1})
	writer := kubernetes.NewForConfigOrDie(direct)
	type toolCheck struct {
		name string
		run  func(context.Context, *kubernetes.Clientset, *kubernetes.Clientset) error
	}
	// The first two need a server that does not change.
	quiet := []toolCheck{{"consistency detector", detectInconsistency}, {"pager", pageThrough}}
	changing := []toolCheck{
		{"UntilWithSync", untilWithSync}, {"RetryWatcher", retryWatcher}, {"informer watcher", informerWatcher},
	}
	for _, one := range quiet {
		results[one.name] = guarded(func() error { return one.run(ctx, reader, writer) })
	}
	var group sync.WaitGroup
	var mutex sync.Mutex
	for _, one := range changing {
		group.Go(func() {
			result := guarded(func() error { return one.run(ctx, reader, writer) })
			mutex.Lock()
			defer mutex.Unlock()
			results[one.name] = result
		})
	}
	group.Wait()
	return results
}

// guarded returns the text of an error, also of a panic, by which the detector reports; "" if there is none.
func guarded(run func() error) (text string) {
	defer func() {
		if panicked := recover(); panicked != nil {
			text = fmt.Sprint(panicked)
		}
	}()
	if err := run(); err != nil {
		return err.Error()
	}
	return ""
}

// detectInconsistency compares a streamed list with a list at exactly its resourceVersion, as client-go does in
// Kubernetes' own CI.
func detectInconsistency(ctx context.Context, reader, _ *kubernetes.Clientset) error {
	yes := true
	watcher, err := reader.CoreV1().ConfigMaps("").Watch(ctx, metav1.ListOptions{
		SendInitialEvents:    &yes,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks:  true,
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	items := []runtime.Object{}
	resourceVersion := ""
	for resourceVersion == "" {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the streamed list did not end: %w", ctx.Err())
		case event, isOpen := <-watcher.ResultChan():
			if !isOpen {
				return fmt.Errorf("the watch ended")
			}
			object, isConfigMap := event.Object.(*corev1.ConfigMap)
			switch {
			case !isConfigMap:
				return fmt.Errorf("%s event: %v", event.Type, event.Object)
			case event.Type == watch.Bookmark && object.Annotations[metav1.InitialEventsAnnotationKey] == "true":
				resourceVersion = object.ResourceVersion
			case event.Type == watch.Added:
				items = append(items, object)
			}
		}
	}
	if len(items) == 0 {
		return fmt.Errorf("there is nothing to compare")
	}
	list := func(ctx context.Context, options metav1.ListOptions) (*corev1.ConfigMapList, error) {
		return reader.CoreV1().ConfigMaps("").List(ctx, options)
	}
	consistencydetector.CheckDataConsistency(ctx, "configmaps", resourceVersion, list, nil, metav1.ListOptions{},
		func() []runtime.Object { return items })
	return ctx.Err()
}

// pageThrough reads a list page by page, and compares it with the whole list.
func pageThrough(ctx context.Context, reader, _ *kubernetes.Clientset) error {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return reader.CoreV1().ConfigMaps("").List(ctx, options)
	})
	pages.PageSize = 3
	names := []string{}
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		names = append(names, string(object.(*corev1.ConfigMap).UID))
		return nil
	})
	if err != nil {
		return err
	}
	whole, err := reader.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(names) != len(whole.Items) {
		return fmt.Errorf("%d objects in pages, %d in the list", len(names), len(whole.Items))
	}
	for i, item := range whole.Items {
		if names[i] != string(item.UID) {
			return fmt.Errorf("object %d of the pages is not that of the list", i)
		}
	}
	return nil
}

// untilWithSync waits for an object to appear, to change and to disappear.
func untilWithSync(ctx context.Context, reader, writer *kubernetes.Clientset) error {
	return withChanges(ctx, writer, "until", func(awaited func(watch.Event) (bool, error)) error {
		_, err := watchtools.UntilWithSync(ctx, listWatch(reader), &corev1.ConfigMap{}, nil, awaited)
		return err
	})
}

// retryWatcher does so by watches that end every second.
func retryWatcher(ctx context.Context, reader, writer *kubernetes.Clientset) error {
	list, err := reader.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	second := int64(1)
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.TimeoutSeconds = &second
			return reader.CoreV1().ConfigMaps("").Watch(ctx, options)
		},
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	return withChanges(ctx, writer, "retry", func(awaited func(watch.Event) (bool, error)) error {
		_, err := watchtools.UntilWithoutRetry(ctx, watcher, awaited)
		return err
	})
}

// informerWatcher does so by the events of an informer.
func informerWatcher(ctx context.Context, reader, writer *kubernetes.Clientset) error {
	_, _, watcher, done := watchtools.NewIndexerInformerWatcher(listWatch(reader), &corev1.ConfigMap{})
	err := withChanges(ctx, writer, "informer", func(awaited func(watch.Event) (bool, error)) error {
		_, err := watchtools.UntilWithoutRetry(ctx, watcher, awaited)
		return err
	})
	watcher.Stop()
	<-done
	return err
}

func listWatch(reader *kubernetes.Clientset) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return reader.CoreV1().ConfigMaps("").List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return reader.CoreV1().ConfigMaps("").Watch(ctx, options)
		},
	}
}

// withChanges creates, changes and deletes an object, with more than a second between them, and has `wait` see all three once
// and in order.
func withChanges(
	ctx context.Context, writer *kubernetes.Clientset, name string,
	wait func(awaited func(watch.Event) (bool, error)) error,
) error {
	name = fmt.Sprintf("check-%s-%d", name, time.Now().UnixNano())
	failed := make(chan error, 1)
	go func() { failed <- makeChanges(ctx, writer, name) }()
	seen := []watch.EventType{}
	expected := []watch.EventType{watch.Added, watch.Modified, watch.Deleted}
	err := wait(func(event watch.Event) (bool, error) {
		object, isConfigMap := event.Object.(*corev1.ConfigMap)
		if !isConfigMap {
			return false, fmt.Errorf("%s event: %v", event.Type, event.Object)
		}
		if object.Name != name {
			return false, nil
		}
		seen = append(seen, event.Type)
		if event.Type != expected[len(seen)-1] {
			return false, fmt.Errorf("the events were %v", seen)
		}
		return len(seen) == len(expected), nil
	})
	if err != nil {
		return fmt.Errorf("%w, after the events %v", err, seen)
	}
	return <-failed
}

func makeChanges(ctx context.Context, writer *kubernetes.Clientset, name string) error {
	configMaps := writer.CoreV1().ConfigMaps("default")
	time.Sleep(300 * time.Millisecond)
	object, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	time.Sleep(1200 * time.Millisecond)
	object.Data = map[string]string{"changed": "yes"}
	if _, err := configMaps.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		return err
	}
	time.Sleep(1200 * time.Millisecond)
	return configMaps.Delete(ctx, name, metav1.DeleteOptions{})
}
