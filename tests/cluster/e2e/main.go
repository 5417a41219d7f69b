// Command e2e runs Kubernetes' own end-to-end tests of test/e2e/apimachinery against a server. Its standard output is
// what `go test -v` prints of each test; everything else goes to standard error.
package main

import (
	"flag"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/formatter"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	_ "k8s.io/kubernetes/test/e2e/apimachinery"
	"k8s.io/kubernetes/test/e2e/framework"
)

// suite leaves it to the results to say what failed.
type suite struct{}

func (suite) Fail() {}

func main() {
	server := flag.String("server", "", "kubeconfig of the server under test")
	files := flag.String("files", "", "the files whose tests are run, separated by commas: watch.go")
	focus := flag.String("focus", "", "regular expression of the tests that are run")
	skip := flag.String("skip", "", "regular expression of the tests that are not run")
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()

	// No controller makes service accounts, or ends namespaces.
	framework.TestContext.KubeConfig = *server
	framework.TestContext.VerifyServiceAccount = false
	framework.TestContext.DeleteNamespace = false
	framework.TestContext.DumpLogsOnFailure = false
	formatter.ColorableStdOut = os.Stderr
	framework.AfterReadingAllFlags(&framework.TestContext)

	config, reporter := ginkgo.GinkgoConfiguration()
	for _, file := range strings.Split(*files, ",") {
		config.FocusFiles = append(config.FocusFiles, "/e2e/apimachinery/"+file)
	}
	if *focus != "" {
		config.FocusStrings = []string{*focus}
	}
	if *skip != "" {
		config.SkipStrings = []string{*skip}
	}
	config.RandomSeed = 1
	config.Timeout = 30 * time.Minute
	reporter.NoColor = true

	ginkgo.ReportAfterEach(func(spec ginkgo.SpecReport) {
		// A test that was not selected is skipped without a reason.
		if spec.State.Is(types.SpecStateSkipped) && spec.Failure.IsZero() {
			return
		}
		name := path.Base(spec.LeafNodeLocation.FileName) + "/" + strings.ReplaceAll(spec.LeafNodeText, " ", "_")
		state := "FAIL"
		if spec.State.Is(types.SpecStatePassed) {
			state = "PASS"
		} else if spec.State.Is(types.SpecStateSkipped) {
			state = "SKIP"
		}
		fmt.Printf("=== NAME  %s\n", name)
		if message := spec.FailureMessage(); message != "" {
			fmt.Printf("    %s\n", strings.ReplaceAll(message, "\n", "\n    "))
		}
		fmt.Printf("--- %s: %s (%.2fs)\n", state, name, spec.RunTime.Seconds())
	})
	gomega.RegisterFailHandler(framework.Fail)
	ginkgo.RunSpecs(suite{}, "apimachinery", config, reporter)
}
