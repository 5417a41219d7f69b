package main

import (
	"fmt"
	"os"
	"sync"
	"time"
)

type idleResult struct {
	Watchers        int     `json:"watchers"`
	BytesPerWatcher float64 `json:"bytesPerWatcher"`
	OpenSeconds     float64 `json:"openSeconds"`
	ServerCpu       float64 `json:"serverCpuSeconds"`
}

// Opens watches that receive nothing, and weighs the server before and after.
func measureIdle(t target, path string, watchers int) (*idleResult, error) {
	before, cpu, start := residentBytes(t.pid), cpuSeconds(t.pid), time.Now()
	connections := make([]*connection, watchers)
	failures := make(chan error, watchers)
	var group sync.WaitGroup
	slots := make(chan struct{}, 32)
	for i := range connections {
		group.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; group.Done() }()
			c, _, err := openWatch(t, path, "0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", 1024)
			if err != nil {
				failures <- err
			}
			connections[i] = c
		}()
	}
	group.Wait()
	seconds := time.Since(start).Seconds()
	if len(failures) > 0 {
		return nil, fmt.Errorf("%d watches fail, the first: %w", len(failures), <-failures)
	}
	time.Sleep(5 * time.Second)
	result := &idleResult{watchers, float64(residentBytes(t.pid)-before) / float64(watchers), seconds, cpuSeconds(t.pid) - cpu}
	for _, c := range connections {
		c.Close()
	}
	return result, nil
}

type listRun struct {
	target      target
	path        string
	connections int
	seconds     float64
	warm        float64
	accept      string
	gzip        bool
	conditional bool
}

type listResult struct {
	Requests          int64   `json:"requests"`
	RequestsPerSecond float64 `json:"requestsPerSecond"`
	BodyBytes         int64   `json:"bodyBytes"`
	MBPerSecond       float64 `json:"mbPerSecond"`
	Status            int     `json:"status"`
	Encoding          string  `json:"encoding"`
	ServerCpu         float64 `json:"serverCpuSeconds"`
	ClientCpu         float64 `json:"clientCpuSeconds"`
}

// Reads one list again and again, over some connections at once.
func measureList(run listRun) (*listResult, error) {
	// A runtime compiles what runs often: the first second says little about the next hour.
	if run.warm > 0 {
		warming := run
		warming.seconds, warming.warm = run.warm, 0
		if _, err := measureList(warming); err != nil {
			return nil, err
		}
	}
	headers := "Accept: " + run.accept + "\r\n"
	if run.gzip {
		headers += "Accept-Encoding: gzip\r\n"
	}
	first, err := dial(run.target, 256*1024)
	if err != nil {
		return nil, err
	}
	a, err := first.get(run.path, headers)
	if err != nil {
		return nil, err
	}
	if a.status != 200 {
		return nil, fmt.Errorf("%s is answered by %d", run.path, a.status)
	}
	if _, err := first.drain(a, make([]byte, 256*1024)); err != nil {
		return nil, err
	}
	first.Close()
	if run.conditional {
		tag := a.header.Get("Etag")
		if tag == "" {
			return &listResult{Status: 200}, nil
		}
		headers += "If-None-Match: " + tag + "\r\n"
	}
	result := &listResult{}
	var group sync.WaitGroup
	var lock sync.Mutex
	failures := make(chan error, run.connections)
	cpu, own, start := cpuSeconds(run.target.pid), cpuSeconds(os.Getpid()), time.Now()
	end := start.Add(time.Duration(run.seconds * float64(time.Second)))
	for range run.connections {
		group.Add(1)
		go func() {
			defer group.Done()
			c, err := dial(run.target, 256*1024)
			if err != nil {
				failures <- err
				return
			}
			defer c.Close()
			buffer := make([]byte, 256*1024)
			for time.Now().Before(end) {
				a, err := c.get(run.path, headers)
				if err != nil {
					failures <- err
					return
				}
				n, err := c.drain(a, buffer)
				if err != nil {
					failures <- err
					return
				}
				lock.Lock()
				result.Requests++
				result.BodyBytes = n
				result.MBPerSecond += float64(n) / 1e6
				result.Status, result.Encoding = a.status, a.header.Get("Content-Encoding")
				lock.Unlock()
			}
		}()
	}
	group.Wait()
	if len(failures) > 0 {
		return nil, <-failures
	}
	seconds := time.Since(start).Seconds()
	result.RequestsPerSecond = float64(result.Requests) / seconds
	result.MBPerSecond /= seconds
	result.ServerCpu = cpuSeconds(run.target.pid) - cpu
	result.ClientCpu = cpuSeconds(os.Getpid()) - own
	return result, nil
}
