// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/internal/test/setting"
	"tidekeeper.dev/tidekeeper/test/framework"
)

var (
	cluster framework.Cluster
	// plugin is the path of the kubectl plugin.
	plugin string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if plugin, err = framework.Binary("TIDE_BIN", "kubectl-tide"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Pod events are disabled because hundreds of pods are created and deleted, and no test reads
	// their events.
	return framework.Main(m, &cluster, "--nodes=0", "--pod-events=false")
}

// result is the plugin's output and exit code.
type result struct {
	stdout, stderr string
	code           int
}

// tide runs the plugin with the given arguments.
func tide(t testing.TB, stdin, kubeconfig string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	p := exec.Command(plugin, args...)
	p.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir(), "TZ=UTC", "KUBECONFIG=" + cmp.Or(kubeconfig, cluster.Kubeconfig)}
	p.Stdin, p.Stdout, p.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := p.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), p.ProcessState.ExitCode()}
}

// answer runs the plugin with -o json and decodes its output. Exit codes other than 0 and the codes in
// `allowed` fail the test.
func answer(t testing.TB, into any, stdin string, args []string, allowed ...int) {
	t.Helper()
	r := tide(t, stdin, "", append(args, "-o", "json")...)
	for _, code := range append(allowed, 0) {
		if r.code == code && r.stderr == "" {
			if err := json.Unmarshal([]byte(r.stdout), into); err != nil {
				t.Fatalf("kubectl tide %s prints %q: %v", strings.Join(args, " "), r.stdout, err)
			}
			return
		}
	}
	t.Fatalf("kubectl tide %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
}

// inWorlds runs a test in several random worlds, which are sets of nodes and pods, some of them in
// parallel.
func inWorlds(t *testing.T, prefix string, test func(*testing.T, *world)) {
	first := setting.Number(t, "SEED", 1, 0)
	for i := range setting.Number(t, "CASES", 20, 1) {
		seed := first + i
		t.Run(fmt.Sprintf("SEED=%d", seed), func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t, fmt.Sprintf("%s-%d", prefix, seed), rand.New(rand.NewPCG(uint64(seed), uint64(len(prefix))))))
		})
	}
}
