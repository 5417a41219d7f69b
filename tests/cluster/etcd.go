package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

// The key under which API servers tell each other what was compacted
// (k8s.io/apiserver/pkg/storage/etcd3/compact.go).
const compactRevisionKey = "compact_rev_key"

type etcdServer struct {
	url      string
	failed   <-chan error
	embedded *embed.Etcd
	client   *clientv3.Client
}

// startEtcd starts a single etcd member that listens for clients on a free loopback port.
func startEtcd(dir string) (*etcdServer, error) {
	config := embed.NewConfig()
	config.Name = "listwatch-test"
	config.Dir = dir
	config.LogLevel = "warn"
	config.LogOutputs = []string{"stderr"}
	// The default of the etcd command; an embedded member has none and would report every request.
	config.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	// What was written survives the death of the process, though not of the machine: enough here,
	// and several times faster.
	config.UnsafeNoFsync = true
	config.ListenClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.AdvertiseClientUrls = config.ListenClientUrls
	// The only member has no peers: it need not listen for them.
	config.ListenPeerUrls = nil
	config.InitialCluster = config.InitialClusterFromName(config.Name)

	embedded, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("etcd did not start on %s: %w", dir, err)
	}
	select {
	case <-embedded.Server.ReadyNotify():
	case err := <-embedded.Err():
		return nil, fmt.Errorf("etcd did not start on %s: %w", dir, err)
	case <-time.After(time.Minute):
		return nil, fmt.Errorf("etcd was not ready on %s after a minute", dir)
	}
	return &etcdServer{
		url:      "http://" + embedded.Clients[0].Addr().String(),
		failed:   embedded.Err(),
		embedded: embedded,
		client:   v3client.New(embedded.Server),
	}, nil
}

// compact forgets every version of every object before now: no resourceVersion that any client
// has seen so far can be read any more. It returns the first one that can.
//
// What then answers 410 Expired, seen with kube-apiserver 1.36:
//
//   - A list that goes on from a `continue` token, or asks for an old resourceVersion with
//     resourceVersionMatch=Exact: within 16 seconds, as the watch cache answers these from snapshots
//     of its own, and asks every 15 seconds what was compacted. At once after a restart, or if
//     kube-apiserver runs with --feature-gates=ListFromCacheSnapshot=false.
//     The 410 of a `continue` token offers a new token (metadata.continue) for the rest, as of now.
//   - A watch from an old resourceVersion: only after a restart. The watch cache answers it from a
//     window of events of its own (at least 75 seconds of them, or 100 events), which a restart
//     empties; a watch that starts before the revision the new window begins at is refused, even if
//     nothing was compacted. Without a restart it needs a resource that has no watch cache, such as
//     --watch-cache-sizes=secrets#0: its watches go to etcd and are refused at once.
//     The answer is 200 and one ERROR event, which holds the Status of code 410.
//
// A watch that is open goes on.
func (e *etcdServer) compact(ctx context.Context) (int64, error) {
	// The first write makes the current revision newer than all that clients know, the second says
	// what API servers say, so that the watch caches drop their snapshots, too.
	response, err := e.client.Put(ctx, compactRevisionKey, "0")
	if err != nil {
		return 0, err
	}
	revision := response.Header.Revision
	if _, err := e.client.Put(ctx, compactRevisionKey, strconv.FormatInt(revision, 10)); err != nil {
		return 0, err
	}
	if _, err := e.client.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil {
		return 0, err
	}
	return revision, nil
}

// stop closes the member, waiting no longer than timeout.
func (e *etcdServer) stop(timeout time.Duration) {
	closed := make(chan struct{})
	go func() {
		e.client.Close()
		e.embedded.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(timeout):
	}
}
