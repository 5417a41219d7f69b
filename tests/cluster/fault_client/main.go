// Command fault_client runs client-go's typed informer of ConfigMaps under the faults of docs/faults.md, with its default
// options. The argument is the path of a kubeconfig. It prints one line of JSON when it has synced, and for each line of
// standard input what it holds and which events it has had since the line before.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// seen is what happened, the key, the resourceVersion and the content.
type seen [4]string

type recorder struct {
	mutex  sync.Mutex
	events []seen
}

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "fault_client: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	informer := informers.NewSharedInformerFactory(client, 0).Core().V1().ConfigMaps().Informer()
	record := &recorder{events: []seen{}}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { record.add("set", object) },
		UpdateFunc: func(_, object any) { record.add("set", object) },
		DeleteFunc: func(object any) {
			if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = tombstone.Obj
			}
			record.add("delete", object)
		},
	})
	if err != nil {
		return err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return fmt.Errorf("the informer did not sync")
	}
	answer(map[string]any{"pid": os.Getpid(), "version": version()})

	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		held := []seen{}
		for _, object := range informer.GetStore().List() {
			held = append(held, summary("set", object))
		}
		record.mutex.Lock()
		answer(map[string]any{"held": held, "events": record.events})
		record.events = []seen{}
		record.mutex.Unlock()
	}
	return nil
}

func (r *recorder) add(what string, object any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.events = append(r.events, summary(what, object))
}

func summary(what string, object any) seen {
	configMap := object.(*corev1.ConfigMap)
	key := configMap.Namespace + "/" + configMap.Name
	return seen{what, key, configMap.ResourceVersion, configMap.Data["value"]}
}

func answer(value any) {
	line, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", line)
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path != "k8s.io/client-go" {
				continue
			}
			if module.Replace != nil {
				module = module.Replace
			}
			return module.Version[1:]
		}
	}
	return "of unknown version"
}
