// Command cluster runs a Kubernetes API server for tests: kube-apiserver and the etcd behind it,
// in one process, with no container engine and no other program of a cluster.
//
// It prints one line of JSON when the API server answers /readyz, and ends on SIGINT, SIGTERM or,
// with --exit-with-stdin, when its parent is gone. Everything it keeps is in --data-dir: a run on
// the same --data-dir and --port goes on where the last one ended, also after SIGKILL.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

const (
	readyTimeout = 2 * time.Minute
	// How long a clean stop may take before the process ends anyway. Open watches keep kube-apiserver
	// from ending by itself, and the data survives an unclean end.
	apiServerStopTimeout = 500 * time.Millisecond
	etcdStopTimeout      = 400 * time.Millisecond
)

type options struct {
	dataDir       string
	port          int
	token         string
	exitWithStdin bool
	apiServerArgs []string
}

// ready is what the program prints, as one line, once the API server answers.
type ready struct {
	Server     string `json:"server"`
	Kubeconfig string `json:"kubeconfig"`
	CAFile     string `json:"caFile"`
	Token      string `json:"token"`
	LogFile    string `json:"logFile"`
	Etcd       string `json:"etcd"`
	PID        int    `json:"pid"`
}

func main() {
	// The log of kube-apiserver and etcd goes to a file; what a person should read goes here.
	stderr := os.Stderr
	opts, err := parseOptions(os.Args[1:], stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err == nil {
		err = run(opts)
	}
	if err != nil {
		fmt.Fprintf(stderr, "cluster: %v\n", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func parseOptions(args []string, output io.Writer) (*options, error) {
	opts := &options{}
	var tokenFile string
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.Usage = func() {
		fmt.Fprintln(output, "usage: cluster --data-dir DIR [flags] [-- kube-apiserver flags]")
		flags.PrintDefaults()
	}
	flags.StringVar(&opts.dataDir, "data-dir", "", "folder for etcd's data, certificates, token, kubeconfig and log (required)")
	flags.IntVar(&opts.port, "port", 0, "port on 127.0.0.1; 0 chooses a free one")
	flags.StringVar(&opts.token, "token", "", "admin's bearer token; by default a random one, kept in the data folder")
	flags.StringVar(&tokenFile, "token-file", "", "file holding the admin's bearer token")
	flags.BoolVar(&opts.exitWithStdin, "exit-with-stdin", false,
		"end when standard input is closed; lines on it are commands (compact)")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	opts.apiServerArgs = flags.Args()
	if opts.dataDir == "" {
		return nil, errors.New("--data-dir is missing: name a folder to keep the data in")
	}
	dataDir, err := filepath.Abs(opts.dataDir)
	if err != nil {
		return nil, err
	}
	opts.dataDir = dataDir
	if opts.port < 0 || opts.port > 65535 {
		return nil, fmt.Errorf("--port %d is out of range: use 0 to 65535", opts.port)
	}
	if tokenFile != "" {
		if opts.token != "" {
			return nil, errors.New("--token and --token-file exclude each other")
		}
		content, err := os.ReadFile(tokenFile)
		if err != nil {
			return nil, err
		}
		opts.token = strings.TrimSpace(string(content))
	}
	return opts, nil
}

func run(opts *options) error {
	if err := os.MkdirAll(opts.dataDir, 0o700); err != nil {
		return err
	}
	// Without this a second process on the folder would wait for etcd's own lock, silently.
	lock, err := fileutil.TryLockFile(filepath.Join(opts.dataDir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return fmt.Errorf("another cluster runs on %s: stop it, or give another --data-dir", opts.dataDir)
	}
	if err != nil {
		return err
	}
	defer lock.Close()

	logFile := filepath.Join(opts.dataDir, "server.log")
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	os.Stderr = log

	port, err := choosePort(opts.port)
	if err != nil {
		return err
	}
	certs, err := ensureCertificates(opts.dataDir)
	if err != nil {
		return err
	}
	token, tokenAuthFile, err := ensureToken(opts.dataDir, opts.token)
	if err != nil {
		return err
	}

	etcd, err := startEtcd(filepath.Join(opts.dataDir, "etcd"))
	if err != nil {
		return err
	}
	defer etcd.stop(etcdStopTimeout)

	// Later flags win, so those of the caller come last.
	args := append([]string{
		"--etcd-servers=" + etcd.url,
		// Nothing is compacted but by the compact command: tests decide what is too old. (Not 0: that
		// also turns off what tells the watch caches that something was compacted.)
		"--etcd-compaction-interval=87600h",
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		// Published as the "kubernetes" endpoint only, where loopback is refused. Set (an address
		// for documentation), as else a machine without a network could not start.
		"--advertise-address=192.0.2.1",
		"--cert-dir=" + opts.dataDir,
		"--tls-cert-file=" + certs.certFile,
		"--tls-private-key-file=" + certs.keyFile,
		"--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + certs.serviceAccountKeyFile,
		"--service-account-signing-key-file=" + certs.serviceAccountKeyFile,
		"--token-auth-file=" + tokenAuthFile,
		"--authorization-mode=RBAC",
		// Needs the controller that makes a service account per namespace, which does not run here.
		"--disable-admission-plugins=ServiceAccount",
		"--profiling=false",
	}, opts.apiServerArgs...)
	// The command installs the handler that stops it on SIGINT and SIGTERM.
	command := app.NewAPIServerCommand()
	command.SetArgs(args)
	command.SilenceErrors = true
	ended := make(chan error, 1)
	go func() { ended <- command.Execute() }()

	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	inputEnded := make(chan struct{})
	if opts.exitWithStdin {
		go func() {
			serveCommands(os.Stdin, os.Stdout, etcd)
			close(inputEnded)
		}()
	}

	server := "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	kubeconfig := filepath.Join(opts.dataDir, "kubeconfig")
	if err := writeKubeconfig(kubeconfig, server, certs.caPEM, token); err != nil {
		return err
	}
	answers := make(chan error, 1)
	readyContext, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	go func() { answers <- waitUntilReady(readyContext, server, certs.caPEM, token) }()

	for {
		select {
		case err := <-answers:
			if err != nil {
				return fmt.Errorf("kube-apiserver was not ready after %v (%w): see %s", readyTimeout, err, logFile)
			}
			line, err := json.Marshal(ready{
				Server: server, Kubeconfig: kubeconfig, CAFile: certs.caFile, Token: token,
				LogFile: logFile, Etcd: etcd.url, PID: os.Getpid(),
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(os.Stdout, "%s\n", line)
		case err := <-ended:
			return fmt.Errorf("kube-apiserver ended by itself (%v): see %s", err, logFile)
		case err := <-etcd.failed:
			return fmt.Errorf("etcd failed (%w): see %s", err, logFile)
		case <-signals:
			waitAtMost(ended, apiServerStopTimeout)
			return nil
		case <-inputEnded:
			// As a signal, since the function that requests it has another package in each minor version.
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Signal(syscall.SIGTERM)
			}
			waitAtMost(ended, apiServerStopTimeout)
			return nil
		}
	}
}

func waitAtMost(ended <-chan error, timeout time.Duration) {
	select {
	case <-ended:
	case <-time.After(timeout):
	}
}

// serveCommands answers each line of input with one line of JSON, until input ends.
func serveCommands(input io.Reader, output io.Writer, etcd *etcdServer) {
	lines := bufio.NewScanner(input)
	for lines.Scan() {
		var answer map[string]any
		switch command := strings.TrimSpace(lines.Text()); command {
		case "":
			continue
		case "compact":
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			revision, err := etcd.compact(ctx)
			cancel()
			if err != nil {
				answer = map[string]any{"error": err.Error()}
			} else {
				answer = map[string]any{"compacted": strconv.FormatInt(revision, 10)}
			}
		default:
			answer = map[string]any{"error": fmt.Sprintf("unknown command %q: use compact", command)}
		}
		line, _ := json.Marshal(answer)
		fmt.Fprintf(output, "%s\n", line)
	}
}

// choosePort finds a free port, or makes sure that the wanted one is free: kube-apiserver would
// say so only in its log. It prefers ports that systems do not give to outgoing connections, so that
// none of them takes the port while the server is down between two runs.
func choosePort(wanted int) (int, error) {
	if wanted != 0 {
		err := tryPort(wanted)
		if errors.Is(err, syscall.EADDRINUSE) {
			return 0, fmt.Errorf("port %d is in use: stop what listens there, or give another --port", wanted)
		}
		return wanted, err
	}
	const lowest, count = 20000, 12000
	var err error
	for range 100 {
		port := lowest + mathrand.IntN(count)
		if err = tryPort(port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("found no free port from %d to %d: %w", lowest, lowest+count-1, err)
}

func tryPort(port int) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return listener.Close()
}

// ensureToken writes the file kube-apiserver reads tokens from: one user in system:masters.
func ensureToken(dir, wanted string) (token, tokenAuthFile string, err error) {
	token = wanted
	kept := filepath.Join(dir, "token")
	if token == "" {
		content, err := os.ReadFile(kept)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", "", err
		}
		token = strings.TrimSpace(string(content))
	}
	if token == "" {
		random := make([]byte, 24)
		if _, err := rand.Read(random); err != nil {
			return "", "", err
		}
		token = hex.EncodeToString(random)
	}
	if strings.ContainsAny(token, " ,\"\r\n\t") {
		return "", "", errors.New("the token may not hold spaces, commas, quotes or line breaks")
	}
	if err := os.WriteFile(kept, []byte(token+"\n"), 0o600); err != nil {
		return "", "", err
	}
	tokenAuthFile = filepath.Join(dir, "tokens.csv")
	line := fmt.Sprintf("%s,admin,admin,\"system:masters\"\n", token)
	return token, tokenAuthFile, os.WriteFile(tokenAuthFile, []byte(line), 0o600)
}

func writeKubeconfig(file, server string, caPEM []byte, token string) error {
	const name = "listwatch-test"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: caPEM}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, file)
}

func waitUntilReady(ctx context.Context, server string, caPEM []byte, token string) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(caPEM)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/readyz", nil)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := client.Do(request)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("/readyz answered %s", response.Status)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}
