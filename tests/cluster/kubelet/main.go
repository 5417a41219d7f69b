// Command kubelet answers what an API server sends to the kubelet of a node for exec, attach, port-forward and logs: it
// runs commands as processes of this machine, in the folder of its argument, and connects to ports of this machine. It
// prints its port, and ends with its standard input.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

const streamTimeout = 10 * time.Second

func main() {
	folder := os.Args[1]
	http.HandleFunc("/exec/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		serveCommand(w, r, folder, r.URL.Query()["command"])
	})
	http.HandleFunc("/attach/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		serveCommand(w, r, folder, []string{"cat"})
	})
	http.HandleFunc("/portForward/{namespace}/{pod}", servePorts)
	http.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "first line of %s\nsecond line\n", r.PathValue("pod"))
	})
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{selfSigned()}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	log.Fatal(http.Serve(listener, nil))
}

// serveCommand runs a command with the streams that the client opens.
func serveCommand(w http.ResponseWriter, r *http.Request, folder string, command []string) {
	query := r.URL.Query()
	wanted := 1 // the one for the outcome
	for _, name := range []string{"input", "output", "error", "stdin", "stdout", "stderr"} {
		if isSet := query.Get(name); isSet == "1" || isSet == "true" {
			wanted++
		}
	}
	conn, opened, err := upgrade(w, r, "v4.channel.k8s.io")
	if err != nil {
		return
	}
	defer conn.Close()
	streams := map[string]httpstream.Stream{}
	for len(streams) < wanted {
		select {
		case stream := <-opened:
			streams[stream.Headers().Get(v1.StreamType)] = stream
		case <-time.After(streamTimeout):
			return
		}
	}
	process := exec.Command(command[0], command[1:]...)
	process.Dir = folder
	if stream, ok := streams[v1.StreamTypeStdout]; ok {
		process.Stdout = stream
	}
	if stream, ok := streams[v1.StreamTypeStderr]; ok {
		process.Stderr = stream
	}
	if stream, ok := streams[v1.StreamTypeStdin]; ok {
		// Not as process.Stdin: its end would be waited for.
		if stdin, err := process.StdinPipe(); err == nil {
			go func() {
				_, _ = io.Copy(stdin, stream)
				_ = stdin.Close()
			}()
		}
	}
	outcome, _ := json.Marshal(statusOf(process.Run()))
	_, _ = streams[v1.StreamTypeError].Write(outcome)
}

// statusOf is what a kubelet sends about the end of a command.
func statusOf(err error) metav1.Status {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return metav1.Status{Status: metav1.StatusSuccess}
	case errors.As(err, &exit):
		code := strconv.Itoa(exit.ExitCode())
		return metav1.Status{
			Status:  metav1.StatusFailure,
			Reason:  "NonZeroExitCode",
			Message: "command terminated with non-zero exit code: exit status " + code,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode", Message: code}}},
		}
	default:
		return metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: err.Error()}
	}
}

// servePorts connects each pair of streams with a port.
func servePorts(w http.ResponseWriter, r *http.Request) {
	conn, opened, err := upgrade(w, r, "portforward.k8s.io")
	if err != nil {
		return
	}
	defer conn.Close()
	failures := map[string]httpstream.Stream{}
	for {
		select {
		case <-conn.CloseChan():
			return
		case stream := <-opened:
			id := stream.Headers().Get(v1.PortForwardRequestIDHeader)
			if stream.Headers().Get(v1.StreamType) == v1.StreamTypeError {
				failures[id] = stream
				continue
			}
			go func(failure httpstream.Stream) {
				defer stream.Close()
				if failure != nil {
					defer failure.Close()
				}
				port, err := net.Dial("tcp", "127.0.0.1:"+stream.Headers().Get(v1.PortHeader))
				if err != nil {
					if failure != nil {
						fmt.Fprint(failure, err)
					}
					return
				}
				defer port.Close()
				go func() {
					_, _ = io.Copy(port, stream)
					_ = port.(*net.TCPConn).CloseWrite()
				}()
				_, _ = io.Copy(stream, port)
			}(failures[id])
		}
	}
}

// upgrade turns a request into a SPDY connection, and returns the streams that the client opens.
func upgrade(w http.ResponseWriter, r *http.Request, protocol string) (httpstream.Connection, <-chan httpstream.Stream, error) {
	if _, err := httpstream.Handshake(r, w, []string{protocol}); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil, nil, err
	}
	opened := make(chan httpstream.Stream, 16)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		opened <- stream
		return nil
	})
	if conn == nil {
		return nil, nil, errors.New("not upgraded")
	}
	return conn, opened, nil
}

func selfSigned() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		log.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}
}
