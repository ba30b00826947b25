// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/kubelet"
	"tidekeeper.dev/tidekeeper/sandbox/internal/node"
	"tidekeeper.dev/tidekeeper/sandbox/internal/ports"
	"tidekeeper.dev/tidekeeper/sandbox/internal/storage"
	"tidekeeper.dev/tidekeeper/sandbox/internal/supervisor"
)

// startTimeout is how long a sandbox may take to become ready, unless its options say so.
const startTimeout = 2 * time.Minute

// Options say what sandbox to run.
type Options struct {
	Dir Dir
	// Nodes is the minimum number of nodes.
	Nodes int
	// RealNodes is how many more nodes have a real kubelet and run containers.
	RealNodes int
	// Kubeconfig gets a copy of the kubeconfig of the administrator.
	Kubeconfig string
	// Audit turns the audit log of the API server on.
	Audit bool
	// Fresh forgets the state of earlier runs.
	Fresh bool
	// Owner is a process that the sandbox does not outlive; nil: none. When it has
	// ended, however it did, the data directory is removed as well.
	Owner *Owner
	// Kubernetes is the release whose API server, controller manager and scheduler run.
	Kubernetes Release
	// EmulatedVersion is the release of Kubernetes whose APIs and features there are,
	// such as 1.34; empty: all of the release that is compiled in.
	EmulatedVersion string
	// KeepHistory keeps all revisions of objects.
	KeepHistory bool
	// WithoutControllers are controllers of the controller manager that do not run.
	WithoutControllers []string
	// PodEvents lets the kubelets write events about pods.
	PodEvents bool
	Delays    kubelet.Delays
	// StartTimeout is how long it may take to become ready. Default: two minutes.
	StartTimeout time.Duration

	// Ready is called once the sandbox can be used.
	Ready func(Status)
	// Crashed is called when a component ended that should not have.
	Crashed func(supervisor.Exit)
}

func (o Options) keeping() keeping { return keeping{owned: o.Owner != nil, fresh: o.Fresh} }

// Abandoned removes what was made for an owner that has ended before there was a
// sandbox to do it, and reports whether it has.
func (o Options) Abandoned() bool {
	if !o.Owner.ended() {
		return false
	}
	// Neither a directory that is kept, nor that of a sandbox that runs.
	if m, err := o.Dir.mark(); err == nil && m == owned && !o.Dir.Running() {
		o.Dir.remove()
	}
	return true
}

// cluster is a running sandbox.
type cluster struct {
	Options
	supervisor *supervisor.Supervisor
	// version is that of the control plane, such as v1.34.4.
	version  string
	settings settings
	started  time.Time
	stop     context.CancelFunc

	mu    sync.Mutex
	times Times
	ready bool
}

// Run runs a sandbox until the context or its owner ends or it is stopped through its
// control socket.
func Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	lock, err := o.Dir.acquire(o.keeping())
	if err != nil {
		return err
	}
	defer lock.Close()
	// After all that is deferred below: when the last process has stopped.
	defer func() {
		if o.Owner.ended() {
			o.Dir.remove()
		}
	}()
	defer func() { _ = o.Dir.removeCgroups() }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go o.Owner.wait(ctx, stop)
	c := &cluster{Options: o, supervisor: supervisor.New(), started: time.Now(), stop: stop}
	if c.version, err = o.Kubernetes.version(); err != nil {
		return err
	}
	if err := c.prepare(); err != nil {
		return err
	}
	crashes := make(chan supervisor.Exit, 16)
	c.supervisor.OnExit = func(e supervisor.Exit) { crashes <- e }

	closeControl, err := c.serveControl()
	if err != nil {
		return err
	}
	defer closeControl()
	defer c.supervisor.Stop(component.Kubelets, component.Scheduler, component.ControllerManager)

	if err := c.start(ctx, crashes); err != nil {
		if ctx.Err() != nil {
			return nil // It was stopped before it was ready.
		}
		return err
	}
	c.Ready(c.status())
	look := time.NewTicker(2 * time.Second)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-crashes:
			c.Crashed(e)
		case <-look.C:
			// Without it, no command could find or stop this sandbox.
			if !sameFile(lock, o.Dir.lock()) {
				return fmt.Errorf("the data directory %s was removed: the sandbox has stopped", o.Dir)
			}
		}
	}
}

// sameFile reports whether an open file still is the one of that name.
func sameFile(f *os.File, name string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(name)
	return err == nil && os.SameFile(open, named)
}

// prepare writes the files that the components read.
func (c *cluster) prepare() error {
	d := c.Dir
	if c.Fresh {
		if err := d.clear(); err != nil {
			return err
		}
	}
	// What a run left behind that was killed.
	if err := d.removeCgroups(); err != nil {
		return err
	}
	for _, name := range []string{"logs", "audit.log"} {
		if err := os.RemoveAll(d.path(name)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(d.path("logs"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(d.path("audit-policy.yaml"), auditPolicy, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(d.path("egress.yaml"), fmt.Appendf(nil, egress, d.KubeletsSocket()), 0o600); err != nil {
		return err
	}
	return d.makePKI()
}

// egress sends what the API server asks of nodes to the socket of the simulated kubelets.
const egress = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: %q}}
`

// start brings everything up, and fails if a component ends meanwhile.
func (c *cluster) start(ctx context.Context, crashes <-chan supervisor.Exit) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := cmp.Or(c.StartTimeout, startTimeout)
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("the sandbox was not ready after %s: see the logs in %s", limit, c.Dir.path("logs")))
	defer cancelTimeout()
	finished := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case e := <-crashes:
			cancel(&CrashError{Exit: e})
		case <-finished:
		}
	})
	err := c.bringUp(ctx)
	close(finished)
	watcher.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (c *cluster) bringUp(ctx context.Context) error {
	if err := c.startControlPlane(); err != nil {
		return err
	}
	config, err := c.Dir.RESTConfig()
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := waitReadyz(ctx, client.RESTClient()); err != nil {
		return err
	}
	c.mu.Lock()
	c.times.APIServerReady = metav1.Duration{Duration: time.Since(c.started)}
	c.mu.Unlock()
	if err := c.launchControlPlane(controllerManager(c.Dir, c.WithoutControllers, c.EmulatedVersion)); err != nil {
		return err
	}
	if err := c.launchControlPlane(scheduler(c.Dir, c.EmulatedVersion)); err != nil {
		return err
	}
	if err := c.launch(kubelets(c.Dir, c.version, c.PodEvents, c.Delays, c.RealNodes)); err != nil {
		return err
	}
	if err := c.addMissingNodes(ctx, client); err != nil {
		return err
	}
	if err := c.startRealNodes(ctx, client); err != nil {
		return err
	}
	if err := storage.EnsureClass(ctx, client); err != nil {
		return err
	}
	if err := waitServiceAccount(ctx, client); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times.Ready = metav1.Duration{Duration: time.Since(c.started)}
	c.ready = true
	return nil
}

// startControlPlane starts etcd and the API server together: the API server itself
// waits for etcd.
func (c *cluster) startControlPlane() error {
	old, _ := c.Dir.loadSettings()
	apiServerPort, err := ports.Reserve(old.APIServerPort)
	if err != nil {
		return err
	}
	etcdPort, err := ports.Reserve(old.EtcdPort)
	if err != nil {
		return err
	}
	c.settings = settings{APIServerPort: apiServerPort.Number(), EtcdPort: etcdPort.Number()}
	if err := c.Dir.saveSettings(c.settings); err != nil {
		return err
	}
	if err := c.Dir.writeKubeconfigs(c.Kubeconfig); err != nil {
		return err
	}
	if err := c.launch(etcd(c.Dir, etcdPort.Number())); err != nil {
		return err
	}
	return c.launchControlPlane(apiServer(c.Dir, apiServerPort.Number(), etcdPort.Number(), c.Options))
}

// launchControlPlane launches a program of the wanted release of Kubernetes.
func (c *cluster) launchControlPlane(spec supervisor.Spec) (err error) {
	if spec.Path, err = c.Kubernetes.program(); err != nil {
		return err
	}
	return c.launch(spec)
}

func (c *cluster) launch(spec supervisor.Spec) error {
	spec.Log = c.Dir.log(spec.Name)
	spec.StopTimeout = stopTimeout
	return c.supervisor.Start(spec)
}

func waitReadyz(ctx context.Context, client rest.Interface) error {
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		return client.Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
}

// waitServiceAccount waits for what the controller manager makes in the
// namespace default, without which the API server admits no pods.
func waitServiceAccount(ctx context.Context, client kubernetes.Interface) error {
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
}

// addMissingNodes adds nodes until there are as many as wanted.
func (c *cluster) addMissingNodes(ctx context.Context, client kubernetes.Interface) error {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if missing := c.Nodes - simulated(list.Items); missing > 0 {
		_, err = node.Add(ctx, client, "node", missing, node.Template{})
	}
	return err
}

// CrashError says that a component ended that should not have.
type CrashError struct{ Exit supervisor.Exit }

func (e *CrashError) Error() string { return Describe(e.Exit) }

// Describe describes the crash of a component, with the end of its log.
func Describe(e supervisor.Exit) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s crashed (%s). Its log, %s, ends with:", e.Name, e.Exit, e.Log)
	for _, line := range e.Tail {
		b.WriteString("\n    " + line)
	}
	if len(e.Tail) == 0 {
		b.WriteString("\n    (it is empty)")
	}
	return b.String()
}

// Abs makes a directory absolute, which its lock and its socket need.
func Abs(dir string) (Dir, error) {
	if dir == "" {
		return "", errors.New("the data directory has no name: give one with --data-dir")
	}
	abs, err := filepath.Abs(dir)
	return Dir(abs), err
}
