// The client of the fan-out benchmark: many watchers in one process, which check that every event comes once and in
// order, or readers of lists. It speaks HTTP/1.1 itself, so that it costs less than the servers it measures.
// It prints one line of JSON.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
)

type target struct {
	server, token string
	pid           int
}

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: client watch|idle|list [flags]"))
	}
	mode := os.Args[1]
	flags := flag.NewFlagSet(mode, flag.ExitOnError)
	t := target{}
	flags.StringVar(&t.server, "server", "", "URL of what is measured")
	flags.StringVar(&t.token, "token", "", "bearer token for it")
	flags.IntVar(&t.pid, "pid", 0, "its process")
	path := flags.String("path", "", "what is read")
	connections := flags.Int("connections", 8, "how many watchers, or readers of lists")
	seconds := flags.Float64("seconds", 5, "for how long lists are read")
	warm := flags.Float64("warm", 1, "for how long they are read before")
	accept := flags.String("accept", "application/json", "")
	gzip := flags.Bool("gzip", false, "accept gzip")
	conditional := flags.Bool("conditional", false, "send the ETag of the first answer")
	writes := target{}
	flags.StringVar(&writes.server, "write-server", "", "URL of the API server")
	flags.StringVar(&writes.token, "write-token", "", "bearer token for it")
	objects := flags.Int("objects", 8, "how many ConfigMaps are updated, each by a writer of its own")
	updates := flags.Int("updates", 2000, "how many updates in all")
	rate := flags.Float64("rate", 0, "updates per second; 0: as many as the API server takes")
	size := flags.Int("size", 600, "bytes of text in each ConfigMap")
	flags.Parse(os.Args[2:])
	var result any
	var err error
	switch mode {
	case "watch":
		result, err = measureWatch(watchRun{t, writes, *path, *connections, *objects, *updates, *rate, *size})
	case "idle":
		result, err = measureIdle(t, *path, *connections)
	case "list":
		result, err = measureList(listRun{t, *path, *connections, *seconds, *warm, *accept, *gzip, *conditional})
	default:
		err = fmt.Errorf("unknown mode %q", mode)
	}
	if err != nil {
		fail(err)
	}
	json.NewEncoder(os.Stdout).Encode(result)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Seconds of CPU time of a process; 0 for none.
func cpuSeconds(pid int) float64 {
	if pid == 0 {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name may have spaces.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100
}

// Resident bytes of a process.
func residentBytes(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
