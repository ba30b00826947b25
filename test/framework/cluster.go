// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	sandbox "tidekeeper.dev/tidekeeper/sandbox/client"
)

// Cluster is a running sandbox with the CRDs installed.
type Cluster struct {
	// Client reads and writes without a cache, as the administrator.
	client.Client
	// Config is the administrator's client configuration.
	Config *rest.Config
	// Kubeconfig is the path of a kubeconfig with the same configuration.
	Kubeconfig string
	// Dir is the sandbox's data directory.
	Dir string

	sandbox *sandbox.Sandbox
	// manager is the path of the managers' kubeconfig.
	manager string
	// managerBinary is the path of the manager binary. If it is empty, the manager of this
	// repository is used.
	managerBinary string
}

// Main runs a package's tests against a new sandbox, which it starts before the first test and
// removes after the last test. It returns the exit code. The arguments are passed to sandbox up.
//
// If TIDEKEEPER_SANDBOX names the data directory of a running sandbox with Tidekeeper installed,
// the tests run against that sandbox and do not remove it.
func Main(m interface{ Run() int }, cluster *Cluster, args ...string) int {
	if err := checkFaults(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if dir := os.Getenv("TIDEKEEPER_SANDBOX"); dir != "" {
		return attached(m, cluster, dir)
	}
	started, err := start((*Cluster).install, args...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*cluster = *started
	code := m.Run()
	if err := cluster.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// AllAtOnce lets all parallel tests of a package run at the same time. By default the number of
// running tests is limited to the number of processors, although the tests mostly wait. Call it in
// TestMain, before [Main].
func AllAtOnce() {
	flag.Parse()
	if err := flag.Set("test.parallel", "100"); err != nil {
		panic(err) // Package testing no longer has the flag test.parallel.
	}
}

// attached is [Main] against the running sandbox in the given directory.
func attached(m interface{ Run() int }, cluster *Cluster, dir string) int {
	kubeconfigs, err := os.MkdirTemp("", "tidekeeper-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(kubeconfigs)
	c, err := attach(dir, kubeconfigs)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*cluster = *c
	return m.Run()
}

// attach returns the cluster of the running sandbox in `dir`. It writes kubeconfigs to the
// directory `kubeconfigs`.
func attach(dir, kubeconfigs string) (*Cluster, error) {
	binary, err := Binary("SANDBOX_BIN", "sandbox")
	if err != nil {
		return nil, err
	}
	running, err := sandbox.Attach(context.Background(), sandbox.Options{Binary: binary, Dir: dir})
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, sandbox: running, Kubeconfig: filepath.Join(kubeconfigs, "kubeconfig"), manager: filepath.Join(kubeconfigs, "manager.kubeconfig")}
	admin, err := running.Run(context.Background(), "kubeconfig")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(c.Kubeconfig, []byte(admin), 0o600); err != nil {
		return nil, err
	}
	if err := c.connect(); err != nil {
		return nil, err
	}
	return c, c.becomeManager()
}

// Start starts an additional sandbox with Tidekeeper installed, for a test that cannot share a
// cluster with other tests.
func Start(t testing.TB, args ...string) *Cluster {
	t.Helper()
	return startFor(t, (*Cluster).install, args...)
}

// StartEmpty starts an additional sandbox without Tidekeeper's CRDs, RBAC and policies.
func StartEmpty(t testing.TB, args ...string) *Cluster {
	t.Helper()
	return startFor(t, func(*Cluster) error { return nil }, args...)
}

func startFor(t testing.TB, install func(*Cluster) error, args ...string) *Cluster {
	t.Helper()
	cluster, err := start(install, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// start starts a sandbox that stops when this process exits, even if it is killed.
func start(install func(*Cluster) error, args ...string) (*Cluster, error) {
	binary, err := Binary("SANDBOX_BIN", "sandbox")
	if err != nil {
		return nil, err
	}
	// The sandbox's directory is not in t.TempDir, whose path may be too long for a socket.
	started, err := sandbox.Up(context.Background(), sandbox.Options{Binary: binary, Args: args})
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: started.Dir, sandbox: started, Kubeconfig: started.Kubeconfig, manager: filepath.Join(started.Dir, "kubeconfigs", "manager")}
	if err := c.connect(); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	if err := install(c); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// install installs Tidekeeper's CRDs, the manager's RBAC and the admission policies.
func (c *Cluster) install() error {
	config := filepath.Join(Root(), "config")
	for _, args := range [][]string{
		{"apply", "-k", filepath.Join(config, "crd")},
		{"apply", "-f", filepath.Join(config, "manager", "namespace.yaml")},
		{"apply", "-k", filepath.Join(config, "rbac")},
		{"apply", "-k", filepath.Join(config, "rbac", "node_maintenance")},
		{"apply", "-k", filepath.Join(config, "rbac", "pod_count")},
		{"apply", "-k", filepath.Join(config, "rbac", "watch_configmaps")},
		{"apply", "-k", filepath.Join(config, "rbac", "watch_secrets")},
		{"apply", "-k", filepath.Join(config, "policy")},
		{"wait", LongTimeout, "--for=condition=Established", "crd", "--all"},
	} {
		if _, err := c.Kubectl("", args...); err != nil {
			return err
		}
	}
	return c.becomeManager()
}

func (c *Cluster) connect() (err error) {
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return err
	}
	c.Config.QPS = -1
	c.Config.UserAgent = "tidekeeper-test"
	ctrllog.SetLogger(logr.Discard())
	scheme := apiruntime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), tidekeeperv1.AddToScheme(scheme)); err != nil {
		return err
	}
	c.Client, err = client.New(c.Config, client.Options{Scheme: scheme})
	return err
}

// ManagerConfig returns a client configuration with the manager's rights and the given user agent,
// without client-side rate limits.
func (c *Cluster) ManagerConfig(t testing.TB, agent string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.manager)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	config.UserAgent = agent
	return config
}

// stop stops the sandbox and removes its files.
func (c *Cluster) stop() error { return c.sandbox.Down(context.Background()) }

// Sandbox runs a sandbox command against the cluster and returns its output.
func (c *Cluster) Sandbox(t testing.TB, args ...string) string {
	t.Helper()
	out, err := c.sandbox.Run(context.WithoutCancel(t.Context()), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// WithManager returns the same cluster with another manager binary, which must accept the manager's
// flags.
func (c *Cluster) WithManager(path string) *Cluster {
	other := *c
	other.managerBinary = path
	return &other
}

// Component kills, pauses, resumes or starts the named control plane component.
func (c *Cluster) Component(t testing.TB, action, name string) {
	t.Helper()
	c.Sandbox(t, "component", action, name)
}

// AwaitAPIServer waits until the API server responds again after an outage.
func (c *Cluster) AwaitAPIServer(t testing.TB) {
	t.Helper()
	Eventually(t, "the API server answers", func() error {
		return c.Get(context.WithoutCancel(t.Context()), client.ObjectKey{Name: "default"}, &corev1.Namespace{})
	})
}

// AddNodes adds `count` ready nodes named <prefix>-1, <prefix>-2 and so on, and deletes them when
// the test ends. The sandbox renews their leases.
func (c *Cluster) AddNodes(t testing.TB, prefix string, count int, args ...string) {
	t.Helper()
	c.Sandbox(t, append([]string{"nodes", "add", "--name-prefix", prefix, "--count", fmt.Sprint(count)}, args...)...)
	t.Cleanup(func() {
		for i := range count {
			c.Delete(t, Node(fmt.Sprintf("%s-%d", prefix, i+1)))
		}
	})
}

// Kubectl runs kubectl as the administrator and returns its output, stdout and stderr
// together, and its error.
func (c *Cluster) Kubectl(stdin string, args ...string) (string, error) {
	command := c.sandbox.Command(context.Background(), append([]string{"kubectl"}, args...)...)
	command.Stdin = strings.NewReader(stdin)
	out, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(command.Args, " "), err, out)
	}
	return string(out), err
}

// MustKubectl is [Cluster.Kubectl] for a command that must succeed.
func (c *Cluster) MustKubectl(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	out, err := c.Kubectl(stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Binary returns the path of the named binary of this repository. The environment variable
// `variable` overrides the path.
func Binary(variable, name string) (string, error) {
	path := cmp.Or(os.Getenv(variable), filepath.Join(Root(), "bin", name))
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s does not exist: run make build, or set %s", path, variable)
	}
	return path, nil
}

// Root returns the repository's root. It is found by going up from the working directory, because
// go test runs in the package's folder.
func Root() string { return root() }

var root = sync.OnceValue(func() string {
	folder, err := os.Getwd()
	for ; err == nil; folder = filepath.Dir(folder) {
		if _, missing := os.Stat(filepath.Join(folder, "test", "go.mod")); missing == nil {
			return folder
		} else if folder == filepath.Dir(folder) {
			err = missing
		}
	}
	panic(fmt.Sprintf("the working directory is not in the repository: %v", err))
})

// Patience is the timeout of [Eventually]. It is long, so that no test fails only because the
// machine is busy.
const Patience = 4 * time.Minute

// LongTimeout is kubectl's --timeout flag with the value of [Patience].
const LongTimeout = "--timeout=4m"

// Eventually waits until the given check returns nil. After [Patience] it fails the test with the
// check's last error.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	EventuallyWithin(t, Patience, what, check)
}

// EventuallyWithin is [Eventually] with a custom timeout.
func EventuallyWithin(t testing.TB, timeout time.Duration, what string, check func() error) {
	t.Helper()
	// The check may run in a cleanup, where the test's context has already been cancelled.
	if err := sandbox.Wait(context.WithoutCancel(t.Context()), timeout, what, check); err != nil {
		t.Fatal(err)
	}
}
