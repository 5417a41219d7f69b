// The contestant client-go: a typed informer of pods over JSON, with an index by node and one by namespace. It takes
// the arguments and prints the measurement that lib/measurement.ts describes.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

type measurement struct {
	Version               string  `json:"version"`
	Stored                int     `json:"stored"`
	SyncMs                float64 `json:"syncMs"`
	HandledMs             float64 `json:"handledMs"`
	StartRssBytes         int64   `json:"startRssBytes"`
	SyncRssBytes          int64   `json:"syncRssBytes"`
	EndRssBytes           int64   `json:"endRssBytes,omitempty"`
	SettledBytes          int64   `json:"settledBytes,omitempty"`
	NodeLookupsPerUs      float64 `json:"nodeLookupsPerUs,omitempty"`
	NamespaceLookupsPerUs float64 `json:"namespaceLookupsPerUs,omitempty"`
	BurstMs               float64 `json:"burstMs,omitempty"`
	BurstEvents           int64   `json:"burstEvents,omitempty"`
	RelistUpdates         *int64  `json:"relistUpdates,omitempty"`
	RelistPeakBytes       int64   `json:"relistPeakBytes,omitempty"`
	RelistSamples         int     `json:"relistSamples,omitempty"`
	RelistKeepsIdentity   *bool   `json:"relistKeepsIdentity,omitempty"`
}

func main() {
	server := flag.String("server", "", "URL")
	lastResourceVersion := flag.String("last-resource-version", "", "of the last event")
	phaseList := flag.String("phases", "sync", "what to measure")
	objects := flag.Int("objects", 0, "how many are listed")
	flag.Int("events", 0, "")
	flag.String("variant", "", "")
	flag.Int("handlers", 1, "")
	flag.Int("indices", 2, "")
	flag.Parse()
	phases := strings.Split(*phaseList, ",")
	has := func(phase string) bool { return slices.Contains(phases, phase) }
	isWeighed := has("heap") || has("relist")

	clientset, err := kubernetes.NewForConfig(&rest.Config{
		Host:          *server,
		ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"},
	})
	check(err)
	informer := v1.NewFilteredPodInformer(clientset, "", 0, cache.Indexers{
		"node":      func(object any) ([]string, error) { return []string{object.(*corev1.Pod).Spec.NodeName}, nil },
		"namespace": cache.MetaNamespaceIndexFunc,
	}, nil)
	var updates atomic.Int64
	var first, last time.Time
	done := make(chan struct{})
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) {},
		UpdateFunc: func(_, object any) {
			if updates.Add(1) == 1 {
				first = time.Now()
			}
			if object.(*corev1.Pod).ResourceVersion == *lastResourceVersion {
				last = time.Now()
				close(done)
			}
		},
		DeleteFunc: func(any) {},
	})
	check(err)

	result := measurement{Version: version()}
	var empty int64
	if isWeighed {
		empty = settledHeap()
	}
	result.StartRssBytes = peakRss()
	start := time.Now()
	go informer.RunWithContext(context.Background())
	// Not by WaitForCacheSync, which looks only every 100 ms.
	for !informer.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	result.SyncMs = milliseconds(time.Since(start))
	for !registration.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	result.HandledMs = milliseconds(time.Since(start))
	result.SyncRssBytes = peakRss()
	result.Stored = len(informer.GetStore().ListKeys())

	if isWeighed {
		result.SettledBytes = settledHeap() - empty
	}
	if has("index") {
		result.NodeLookupsPerUs = timeLookups(informer.GetIndexer(), "node")
		result.NamespaceLookupsPerUs = timeLookups(informer.GetIndexer(), "namespace")
	}
	if has("relist") {
		key := informer.GetStore().ListKeys()[0]
		before, _, _ := informer.GetStore().GetByKey(key)
		stop := make(chan struct{})
		sampled := make(chan struct{})
		var peak int64
		go func() {
			peak, result.RelistSamples = sampleHeap(stop)
			close(sampled)
		}()
		post(*server + "/control/relist")
		// The watch may be open before the list is applied and everybody was told.
		quiet := max(300*time.Millisecond, time.Duration(*objects)*20*time.Microsecond)
		for before := int64(-1); before != updates.Load(); {
			before = updates.Load()
			time.Sleep(quiet)
		}
		close(stop)
		<-sampled
		result.RelistPeakBytes = peak - empty
		count := updates.Swap(0)
		result.RelistUpdates = &count
		after, _, _ := informer.GetStore().GetByKey(key)
		keeps := before == after
		result.RelistKeepsIdentity = &keeps
	}
	if has("burst") {
		updates.Store(0)
		go post(*server + "/control/burst")
		<-done
		result.BurstMs = milliseconds(last.Sub(first))
		result.BurstEvents = updates.Load()
		result.EndRssBytes = peakRss()
	}
	line, err := json.Marshal(result)
	check(err)
	fmt.Printf("MEASUREMENT %s\n", line)
}

// Objects per microsecond over at least 300 ms, after 100 ms of warming up.
func timeLookups(indexer cache.Indexer, name string) float64 {
	lookUp := func() (found int) {
		for _, value := range indexer.ListIndexFuncValues(name) {
			objects, err := indexer.ByIndex(name, value)
			check(err)
			found += len(objects)
		}
		return found
	}
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
		lookUp()
	}
	found := 0
	start := time.Now()
	for time.Since(start) < 300*time.Millisecond {
		found += lookUp()
	}
	return float64(found) / (milliseconds(time.Since(start)) * 1000)
}

func settledHeap() int64 {
	for range 3 {
		time.Sleep(20 * time.Millisecond)
		runtime.GC()
	}
	return heap()
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// The highest heap among samples, each taken after a collection: what was held, not what was left to collect. The pause
// between samples is twice as long as the collection took and at least 25 ms; the last one is taken when it stops.
func sampleHeap(stop <-chan struct{}) (peak int64, samples int) {
	for isStopped := false; ; {
		start := time.Now()
		runtime.GC()
		took := time.Since(start)
		peak = max(peak, heap())
		samples++
		if isStopped {
			return peak, samples
		}
		select {
		case <-stop:
			isStopped = true
		case <-time.After(max(25*time.Millisecond, 2*took)):
		}
	}
}

var vmHWM = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

func peakRss() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	match := vmHWM.FindSubmatch(status)
	if match == nil {
		return 0
	}
	kilobytes, _ := strconv.ParseInt(string(match[1]), 10, 64)
	return kilobytes * 1024
}

func post(url string) {
	response, err := http.Post(url, "application/json", nil)
	check(err)
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	check(err)
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, module := range info.Deps {
			if module.Path == "k8s.io/client-go" {
				return fmt.Sprintf("%s, %s", module.Version, runtime.Version())
			}
		}
	}
	return runtime.Version()
}

func milliseconds(duration time.Duration) float64 {
	return float64(duration.Nanoseconds()) / 1e6
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
