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

// startTimeout is the default for Options.StartTimeout.
const startTimeout = 2 * time.Minute

// Options configure a sandbox.
type Options struct {
	Dir Dir
	// Nodes is the minimum number of simulated nodes. Nodes of an earlier run are kept, so there
	// may be more.
	Nodes int
	// RealNodes is the number of additional nodes with a real kubelet, which run real containers.
	RealNodes int
	// Kubeconfig is the path to which a copy of the administrator's kubeconfig is written, or empty
	// for no copy.
	Kubeconfig string
	// Audit enables the audit log of the API server.
	Audit bool
	// Fresh discards the state of earlier runs in the data directory.
	Fresh bool
	// Owner is a process that the sandbox must not outlive, or nil. When the owner exits for any
	// reason, the sandbox stops and its data directory is removed.
	Owner *Owner
	// Kubernetes is the Kubernetes release, such as 1.34, whose API server, controller manager and
	// scheduler run. If it is empty, the compiled-in release runs.
	Kubernetes Release
	// EmulatedVersion is the Kubernetes release, such as 1.34, to whose APIs and features the
	// components are restricted. If it is empty, there is no restriction.
	EmulatedVersion string
	// FeatureGates is the value of --feature-gates of the API server, the controller manager and
	// the scheduler. RuntimeConfig is the value of --runtime-config of the API server, which
	// enables APIs that are disabled by default. If these fields are empty, the components use
	// their defaults.
	FeatureGates, RuntimeConfig string
	// KeepHistory disables the compaction of old etcd revisions.
	KeepHistory bool
	// WithoutControllers lists the controllers that are disabled in the controller manager.
	WithoutControllers []string
	// PodEvents makes the kubelets record Events about pods.
	PodEvents bool
	Delays    kubelet.Delays
	// StartTimeout is the maximum startup time. 0 means two minutes.
	StartTimeout time.Duration

	// Ready is called when the sandbox is ready.
	Ready func(Status)
	// Crashed is called when a component has exited unexpectedly.
	Crashed func(supervisor.Exit)
}

func (o Options) keeping() keeping { return keeping{owned: o.Owner != nil, fresh: o.Fresh} }

// Abandoned reports whether the owner has exited. If it has, Abandoned removes the directory that
// was created for the owner, unless a running sandbox still uses the directory and will remove it.
func (o Options) Abandoned() bool {
	if !o.Owner.ended() {
		return false
	}
	// Keep the directory if it is not marked as the owner's, or if a sandbox is running in it.
	if m, err := o.Dir.marker().read(); err == nil && m == owned && !o.Dir.lock().held() {
		o.Dir.remove()
	}
	return true
}

// check returns an error if the sandbox cannot run on this machine with these options, or would
// overwrite a kubeconfig that is not a sandbox's.
func (o Options) check() error {
	if err := o.checkRelease(); err != nil {
		return err
	}
	return errors.Join(mayOverwrite(o.Kubeconfig), o.checkRealNodes())
}

// Check creates the data directory, and returns an error if a sandbox with these options could not
// start there. It starts no process.
func (o Options) Check() error {
	if err := o.check(); err != nil {
		return err
	}
	lock, err := o.acquire()
	if err != nil {
		return err
	}
	return lock.Close()
}

// cluster is a sandbox that runs in this process.
type cluster struct {
	Options
	supervisor *supervisor.Supervisor
	// version is the version of the control plane, such as v1.34.4.
	version  string
	settings settings
	plan     plan
	started  time.Time
	stop     context.CancelFunc

	mu    sync.Mutex
	times Times
	ready bool
}

// Run runs a sandbox until the context is done, the owner exits, or the sandbox is stopped through
// its control socket.
func Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	lock, err := o.acquire()
	if err != nil {
		return err
	}
	defer lock.Close()
	// This deferred function runs after the last component has exited, and before the lock is
	// released.
	defer func() {
		if o.Owner.ended() {
			o.Dir.remove()
		}
	}()
	defer func() { _ = removeCgroups(o.Dir) }()
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
			return nil // The sandbox was stopped before it was ready.
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
			// Stop if the lock file was removed, because without this file, no command could find
			// or stop the sandbox.
			if !sameFile(lock, string(o.Dir.lock())) {
				return fmt.Errorf("the data directory %s was removed: the sandbox has stopped", o.Dir)
			}
		}
	}
}

// prepare removes the leftovers of earlier runs, and writes the configuration files and
// certificates that the components read.
func (c *cluster) prepare() error {
	d := c.Dir
	if c.Fresh {
		if err := d.clear(); err != nil {
			return err
		}
	}
	// An earlier run that was killed could not remove its cgroups.
	if err := removeCgroups(d); err != nil {
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
	return d.credentials().issue()
}

// egress is the format of the API server's egress configuration, which directs its connections to
// nodes to the simulated kubelets' socket. The verb %q stands for the path of the socket.
const egress = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: %q}}
`

// start starts all components and nodes. It fails if a component exits before the sandbox is ready.
func (c *cluster) start(ctx context.Context, crashes <-chan supervisor.Exit) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := cmp.Or(c.StartTimeout, startTimeout)
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("the sandbox was not ready after %s: see the logs in %s", limit, c.Dir.Logs()))
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
	if err := c.launch(c.plan.controllerManager(), c.plan.scheduler(), c.plan.kubelets()); err != nil {
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

// startControlPlane starts etcd and the API server at the same time. The API server itself waits
// until etcd responds.
func (c *cluster) startControlPlane() error {
	old, _ := c.Dir.settings().load()
	apiServerPort, err := ports.Reserve(old.APIServerPort)
	if err != nil {
		return err
	}
	etcdPort, err := ports.Reserve(old.EtcdPort)
	if err != nil {
		return err
	}
	c.settings = settings{APIServerPort: apiServerPort.Number(), EtcdPort: etcdPort.Number()}
	if err := c.Dir.settings().save(c.settings); err != nil {
		return err
	}
	if err := c.Dir.Access().writeKubeconfigs(c.Kubeconfig); err != nil {
		return err
	}
	program, err := c.Kubernetes.program()
	if err != nil {
		return err
	}
	c.plan = plan{Options: c.Options, settings: c.settings, version: c.version, program: program}
	return c.launch(c.plan.etcd(), c.plan.apiServer())
}

// launch starts components in the given order. It does not wait until a component is ready before
// it starts the next.
func (c *cluster) launch(specs ...supervisor.Spec) error {
	for _, spec := range specs {
		spec.Log = filepath.Join(c.Dir.Logs(), spec.Name+".log")
		spec.StopTimeout = stopTimeout
		if err := c.supervisor.Start(spec); err != nil {
			return err
		}
	}
	return nil
}

func waitReadyz(ctx context.Context, client rest.Interface) error {
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		return client.Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
}

// waitServiceAccount waits for the ServiceAccount "default" in the namespace "default", because the
// API server admits no pods without it.
func waitServiceAccount(ctx context.Context, client kubernetes.Interface) error {
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
}

// addMissingNodes creates simulated nodes until there are as many as Options.Nodes.
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

// CrashError reports that a component has exited unexpectedly during the start.
type CrashError struct{ Exit supervisor.Exit }

func (e *CrashError) Error() string { return Describe(e.Exit) }

// Describe describes a component's crash, with the last lines of its log.
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
