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
	"runtime"
	"strings"
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
	// Client reads and writes past any cache, as the administrator.
	client.Client
	// Config is how the administrator reaches the API server.
	Config *rest.Config
	// Kubeconfig is a file that says the same.
	Kubeconfig string
	// Dir is the sandbox's data directory.
	Dir string

	sandbox *sandbox.Sandbox
	// manager is the kubeconfig that managers run with.
	manager string
	// managerBinary is what is started as the manager; "": the manager.
	managerBinary string
}

// Main runs the tests of a package against a sandbox of their own, which is
// there before the first of them and gone after the last. It returns the exit
// code. The arguments are those of sandbox up.
//
// If TIDEKEEPER_SANDBOX names the data directory of a sandbox that runs, with
// Tidekeeper installed, the tests run against that one and leave it there.
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

// AllAtOnce lets all tests of a package that are parallel run at the same time,
// and not as many as there are processors: they mostly wait. It is for TestMain,
// before [Main].
func AllAtOnce() {
	flag.Parse()
	if err := flag.Set("test.parallel", "100"); err != nil {
		panic(err) // Package testing has no such flag any more.
	}
}

// attached is Main against a sandbox that already runs.
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

// attach returns the sandbox that runs in a directory. Its kubeconfigs are
// written to another one.
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

// Start starts another sandbox with Tidekeeper installed, for a test that wants
// one to itself.
func Start(t testing.TB, args ...string) *Cluster {
	t.Helper()
	return startFor(t, (*Cluster).install, args...)
}

// StartEmpty starts a sandbox without anything of Tidekeeper in it.
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

// start starts a sandbox that does not outlive this process, even if that is killed.
func start(install func(*Cluster) error, args ...string) (*Cluster, error) {
	binary, err := Binary("SANDBOX_BIN", "sandbox")
	if err != nil {
		return nil, err
	}
	// Not in t.TempDir, whose path may be too long for a socket.
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

// install installs the CRDs, what the manager may do, and the policies.
func (c *Cluster) install() error {
	config := filepath.Join(Root(), "config")
	for _, args := range [][]string{
		{"apply", "-k", filepath.Join(config, "crd")},
		{"apply", "-f", filepath.Join(config, "manager", "namespace.yaml")},
		{"apply", "-k", filepath.Join(config, "rbac")},
		{"apply", "-k", filepath.Join(config, "rbac", "pod_count")},
		{"apply", "-k", filepath.Join(config, "policy")},
		{"wait", "--for=condition=Established", "crd", "--all"},
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

// ManagerConfig returns how a client reaches the API server with the rights of
// the manager, without limits of its own. Its requests bear this user agent.
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

// stop stops the sandbox and removes what is left of it.
func (c *Cluster) stop() error { return c.sandbox.Down(context.Background()) }

// Sandbox runs a command of the sandbox against the cluster and returns what
// it printed.
func (c *Cluster) Sandbox(t testing.TB, args ...string) string {
	t.Helper()
	out, err := c.sandbox.Run(context.WithoutCancel(t.Context()), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// WithManager returns the same cluster, but the managers that are started on it
// are another binary, which takes the flags of the manager.
func (c *Cluster) WithManager(path string) *Cluster {
	other := *c
	other.managerBinary = path
	return &other
}

// Component does something to a component of the control plane: kill, pause,
// resume or start.
func (c *Cluster) Component(t testing.TB, action, name string) {
	t.Helper()
	c.Sandbox(t, "component", action, name)
}

// AwaitAPIServer waits until the API server answers, after it was away.
func (c *Cluster) AwaitAPIServer(t testing.TB) {
	t.Helper()
	Eventually(t, "the API server answers", func() error {
		return c.Get(context.WithoutCancel(t.Context()), client.ObjectKey{Name: "default"}, &corev1.Namespace{})
	})
}

// AddNodes adds ready nodes named <prefix>-1 and so on, which the sandbox
// keeps alive, and deletes them when the test ends.
func (c *Cluster) AddNodes(t testing.TB, prefix string, count int, args ...string) {
	t.Helper()
	c.Sandbox(t, append([]string{"add-nodes", "--name-prefix", prefix, "--count", fmt.Sprint(count)}, args...)...)
	t.Cleanup(func() {
		for i := range count {
			c.Delete(t, Node(fmt.Sprintf("%s-%d", prefix, i+1)))
		}
	})
}

// Kubectl runs kubectl as the administrator and returns what it printed, on
// either channel, and its error.
func (c *Cluster) Kubectl(stdin string, args ...string) (string, error) {
	command := c.sandbox.Command(context.Background(), append([]string{"kubectl"}, args...)...)
	command.Stdin = strings.NewReader(stdin)
	out, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(command.Args, " "), err, out)
	}
	return string(out), err
}

// Binary returns the path of a binary of this repository, which a variable of the
// environment can name.
func Binary(variable, name string) (string, error) {
	path := cmp.Or(os.Getenv(variable), filepath.Join(Root(), "bin", name))
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s does not exist: run make build, or set %s", path, variable)
	}
	return path, nil
}

// Root returns the root of the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Patience is how long a test waits for what should come soon.
const Patience = 30 * time.Second

// Eventually waits until the check returns nil, and fails the test with its
// last error if it does not in time.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	EventuallyWithin(t, Patience, what, check)
}

// EventuallyWithin is Eventually with another timeout.
func EventuallyWithin(t testing.TB, timeout time.Duration, what string, check func() error) {
	t.Helper()
	// Cleanups wait too, when the context of the test has ended.
	if err := sandbox.Wait(context.WithoutCancel(t.Context()), timeout, what, check); err != nil {
		t.Fatal(err)
	}
}
