package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type watchRun struct {
	target, writes target
	path           string
	watchers       int
	objects        int
	updates        int
	rate           float64
	size           int
}

type watchResult struct {
	Watchers        int     `json:"watchers"`
	Updates         int     `json:"updates"`
	Delivered       int64   `json:"delivered"`
	EventBytes      int64   `json:"eventBytes"`
	Seconds         float64 `json:"seconds"`
	WriteSeconds    float64 `json:"writeSeconds"`
	EventsPerSecond float64 `json:"eventsPerSecond"`
	ServerCpu       float64 `json:"serverCpuSeconds"`
	ClientCpu       float64 `json:"clientCpuSeconds"`
	LagP50Ms        float64 `json:"lagP50Ms"`
	LagP99Ms        float64 `json:"lagP99Ms"`
	LagMaxMs        float64 `json:"lagMaxMs"`
	BytesPerWatcher float64 `json:"bytesPerWatcher"`
	Faults          int64   `json:"faults"`
	FirstFault      string  `json:"firstFault,omitempty"`
}

// Lags in steps of a quarter of a millisecond, up to two minutes.
const (
	lagStep  = 250 * time.Microsecond
	lagSteps = 480_000
)

type watching struct {
	run       watchRun
	lags      []int64
	delivered atomic.Int64
	bytes     atomic.Int64
	faults    atomic.Int64
	fault     atomic.Pointer[string]
	done      sync.WaitGroup
}

func (w *watching) report(format string, values ...any) {
	w.faults.Add(1)
	text := fmt.Sprintf(format, values...)
	w.fault.CompareAndSwap(nil, &text)
}

func measureWatch(run watchRun) (*watchResult, error) {
	w := &watching{run: run, lags: make([]int64, lagSteps+1)}
	writer, err := newWriter(run)
	if err != nil {
		return nil, err
	}
	resourceVersion, err := settled(run, writer.resourceVersion)
	if err != nil {
		return nil, err
	}
	before := residentBytes(run.target.pid)
	var connections []*connection
	for i := 0; i < run.watchers; i++ {
		c, a, err := openWatch(run.target, run.path, resourceVersion, 32*1024)
		if err != nil {
			return nil, fmt.Errorf("watcher %d: %w", i, err)
		}
		connections = append(connections, c)
		w.done.Add(1)
		go w.follow(i, a)
	}
	time.Sleep(time.Second)
	opened := residentBytes(run.target.pid)
	cpu, own := cpuSeconds(run.target.pid), cpuSeconds(os.Getpid())
	start := time.Now()
	if err := writer.write(run); err != nil {
		return nil, err
	}
	writeSeconds := time.Since(start).Seconds()
	finished := make(chan struct{})
	go func() { w.done.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-time.After(90 * time.Second):
		w.report("not every watcher received every event within 90 s")
		for _, c := range connections {
			c.Close()
		}
		<-finished
	}
	seconds := time.Since(start).Seconds()
	result := &watchResult{
		Watchers: run.watchers, Updates: run.updates,
		Delivered: w.delivered.Load(), Seconds: seconds, WriteSeconds: writeSeconds,
		EventBytes:      w.bytes.Load() / max(1, w.delivered.Load()),
		EventsPerSecond: float64(w.delivered.Load()) / seconds,
		ServerCpu:       cpuSeconds(run.target.pid) - cpu, ClientCpu: cpuSeconds(os.Getpid()) - own,
		LagP50Ms: w.lag(0.5), LagP99Ms: w.lag(0.99), LagMaxMs: w.lag(1),
		BytesPerWatcher: float64(opened-before) / float64(run.watchers),
		Faults:          w.faults.Load(),
	}
	if fault := w.fault.Load(); fault != nil {
		result.FirstFault = *fault
	}
	for _, c := range connections {
		c.Close()
	}
	return result, nil
}

// Waits until the server has come to what was written; returns the version to watch from.
func settled(run watchRun, resourceVersion string) (string, error) {
	wanted, _ := strconv.ParseInt(resourceVersion, 10, 64)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		c, err := dial(run.target, 64*1024)
		if err != nil {
			return "", err
		}
		// At version 0, both answer from their caches.
		a, err := c.get(run.path+"?resourceVersion=0", "")
		if err != nil {
			c.Close()
			return "", err
		}
		body, _ := io.ReadAll(a.body)
		c.Close()
		var list struct {
			Metadata struct{ ResourceVersion string }
		}
		if err := json.Unmarshal(body, &list); err != nil {
			return "", fmt.Errorf("the list is answered by %d %.200s", a.status, body)
		}
		if found, _ := strconv.ParseInt(list.Metadata.ResourceVersion, 10, 64); found >= wanted {
			return list.Metadata.ResourceVersion, nil
		}
	}
	return "", fmt.Errorf("the server has not come to version %s within 20 s", resourceVersion)
}

func openWatch(t target, path, resourceVersion string, bufferSize int) (*connection, *answer, error) {
	c, err := dial(t, bufferSize)
	if err != nil {
		return nil, nil, err
	}
	a, err := c.get(path+"?watch=true&allowWatchBookmarks=true&resourceVersion="+resourceVersion, "Accept: application/json\r\n")
	if err == nil && a.status != 200 {
		body, _ := io.ReadAll(a.body)
		err = fmt.Errorf("%d %s", a.status, body)
	}
	return c, a, err
}

var (
	sequenceField = []byte(`"sequence":"`)
	sentField     = []byte(`"sent":"`)
	objectField   = []byte(`"writer":"`)
	bookmarkStart = []byte(`{"type":"BOOKMARK"`)
	eventStart    = []byte(`{"type":"MODIFIED"`)
)

// Reads one watch, until it has every event.
func (w *watching) follow(index int, a *answer) {
	defer w.done.Done()
	next := make([]int, w.run.objects)
	total := 0
	buffer := make([]byte, 0, 64*1024)
	lags := map[int]int64{}
	var length int64
	defer func() {
		w.delivered.Add(int64(total))
		w.bytes.Add(length)
		for lag, count := range lags {
			atomic.AddInt64(&w.lags[lag], count)
		}
	}()
	for total < w.run.updates {
		if len(buffer) == cap(buffer) {
			buffer = append(make([]byte, 0, 2*cap(buffer)), buffer...)
		}
		n, err := a.body.Read(buffer[len(buffer):cap(buffer)])
		if err != nil {
			w.report("watcher %d ended after %d of %d events: %v", index, total, w.run.updates, err)
			return
		}
		now := time.Now().UnixNano()
		buffer = buffer[:len(buffer)+n]
		rest := buffer
		for {
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				break
			}
			line := rest[:end]
			rest = rest[end+1:]
			if bytes.HasPrefix(line, bookmarkStart) {
				continue
			}
			if !bytes.HasPrefix(line, eventStart) {
				w.report("watcher %d received %.200s", index, line)
				return
			}
			object, sequence, sent := int(number(line, objectField)), int(number(line, sequenceField)), number(line, sentField)
			if object < 0 || object >= len(next) || sequence != next[object]+1 {
				w.report("watcher %d received event %d of object %d after %d", index, sequence, object, next[max(object, 0)])
				return
			}
			next[object] = sequence
			total++
			length += int64(len(line))
			lag := int(time.Duration(now-sent) / lagStep)
			lags[min(max(lag, 0), lagSteps)]++
		}
		buffer = buffer[:copy(buffer[:cap(buffer)], rest)]
	}
}

func number(line, field []byte) int64 {
	at := bytes.Index(line, field)
	if at < 0 {
		return -1
	}
	var value int64
	for _, digit := range line[at+len(field):] {
		if digit < '0' || digit > '9' {
			break
		}
		value = value*10 + int64(digit-'0')
	}
	return value
}

func (w *watching) lag(share float64) float64 {
	var all int64
	for _, count := range w.lags {
		all += count
	}
	wanted := int64(math.Ceil(share * float64(all)))
	for lag, count := range w.lags {
		if wanted -= count; wanted <= 0 {
			return float64(lag) * float64(lagStep) / float64(time.Millisecond)
		}
	}
	return 0
}

// Writes ConfigMaps at the API server.
type writer struct {
	client          *http.Client
	run             watchRun
	names           []string
	resourceVersion string
}

func newWriter(run watchRun) (*writer, error) {
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
		MaxIdleConnsPerHost: run.objects,
		MaxConnsPerHost:     run.objects,
	}
	w := &writer{client: &http.Client{Transport: transport}, run: run}
	for i := 0; i < run.objects; i++ {
		w.names = append(w.names, fmt.Sprintf("fanout-%d", i))
		if err := w.put(i, 0); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *writer) put(i, sequence int) error {
	url := w.run.writes.server + w.run.path
	object := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": w.names[i], "labels": map[string]string{"app": "fanout"}},
		"data": map[string]string{
			"writer":   strconv.Itoa(i),
			"sequence": strconv.Itoa(sequence),
			"sent":     strconv.FormatInt(time.Now().UnixNano(), 10),
			"text":     strings.Repeat("x", w.run.size),
		},
	}
	body, _ := json.Marshal(object)
	status, text, err := w.send("PUT", url+"/"+w.names[i], body)
	if err == nil && status == 404 {
		status, text, err = w.send("POST", url, body)
	}
	if err != nil {
		return err
	}
	if status >= 300 {
		return fmt.Errorf("writing %s is answered by %d %.300s", w.names[i], status, text)
	}
	if sequence == 0 {
		var written struct {
			Metadata struct{ ResourceVersion string }
		}
		json.Unmarshal(text, &written)
		w.resourceVersion = written.Metadata.ResourceVersion
	}
	return nil
}

func (w *writer) send(method, url string, body []byte) (int, []byte, error) {
	request, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+w.run.writes.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := w.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, text, err
}

// All updates: each object's in order.
func (w *writer) write(run watchRun) error {
	var group sync.WaitGroup
	failures := make(chan error, run.objects)
	start := time.Now()
	for i := 0; i < run.objects; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := i; n < run.updates; n += run.objects {
				if run.rate > 0 {
					time.Sleep(time.Until(start.Add(time.Duration(float64(n) / run.rate * float64(time.Second)))))
				}
				if err := w.put(i, n/run.objects+1); err != nil {
					failures <- err
					return
				}
			}
		}()
	}
	group.Wait()
	close(failures)
	var all []error
	for err := range failures {
		all = append(all, err)
	}
	return errors.Join(all...)
}
