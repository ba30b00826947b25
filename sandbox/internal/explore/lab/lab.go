// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/kubelet"
	"tidekeeper.dev/tidekeeper/sandbox/internal/snapshot"
	"tidekeeper.dev/tidekeeper/sandbox/internal/supervisor"
)

// Lab is a pool of sandboxes with the same initial state. After each run, the sandbox is restored
// to that state and reused, which takes a fraction of a sandbox's start time.
type Lab struct {
	dir      string
	workload *workload.Workload
	// prepared is the snapshot of the state that runs start from.
	prepared *snapshot.Snapshot
	// bin is the directory of links to the sandbox binary's embedded programs, such as kubectl.
	bin string
	// account is the operator's ServiceAccount as NAMESPACE/NAME, or empty for an operator with all
	// rights. Why explains the choice of the account to users in a line.
	account, Why string
	// from is the Deployment or StatefulSet that uses the account, as KIND/NAMESPACE/NAME, or
	// empty. environment lists its container's environment variables. hostName is the name of the
	// operator's Pod. served is the set of Services whose webhooks the operator serves.
	from        string
	environment []string
	hostName    string
	served      map[types.NamespacedName]bool
	// Warnings lists warnings for users about the installed objects.
	Warnings []string
	// Alone is set if this machine does not permit separate namespaces for the operator, for
	// example inside a pod. The operator then shares the machine's network.
	Alone bool
	// idled, unless nil, is called each time a sandbox becomes idle after a run.
	idled func()

	mu sync.Mutex
	// idle lists the sandboxes without a run, longest idle first. made counts all sandboxes.
	idle []*Sandbox
	made int
}

// Sandbox is a running sandbox of a Lab.
type Sandbox struct {
	dir    cluster.Dir
	Config *rest.Config
	stop   context.CancelFunc
	// running waits for the sandbox's goroutines to stop. ended receives the error with which the
	// sandbox stopped.
	running sync.WaitGroup
	ended   chan error
	// crashed receives an error for each crash of a control plane component.
	crashed chan error
	lab     *Lab
	// runs counts the runs so far. since is the end time of the last run. spoilt is set if the
	// sandbox must not be reused.
	runs   int
	since  time.Time
	spoilt bool
}

// New returns a lab in a directory, for the nodes and manifests of a workload. Its initial state must be
// prepared, as [Setup.MakeLab] does.
func New(dir string, w *workload.Workload) (*Lab, error) {
	l := &Lab{dir: dir, workload: w, bin: filepath.Join(dir, "bin")}
	if err := os.Mkdir(l.bin, 0o700); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{component.Kubectl, component.ControllerManager, component.Scheduler} {
		if err := os.Symlink(self, filepath.Join(l.bin, name)); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// path returns a PATH that begins with the directory of kubectl.
func (l *Lab) path() string { return l.bin + string(os.PathListSeparator) + os.Getenv("PATH") }

// base returns the data directory with the initial state of all runs, in which no sandbox runs.
func (l *Lab) base() cluster.Dir { return cluster.Dir(filepath.Join(l.dir, "base")) }

// next returns the data directory of the next sandbox, which does not exist yet.
func (l *Lab) next() cluster.Dir {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made++
	return cluster.Dir(filepath.Join(l.dir, fmt.Sprintf("sandbox-%d", l.made)))
}

// mostRuns is the number of runs after which a sandbox is removed, because its control plane's
// memory usage grows with each run.
const mostRuns = 40

// Begin restores an idle sandbox to the prepared state and returns it, or starts a new sandbox.
func (l *Lab) Begin(ctx context.Context) (*Sandbox, error) {
	for s := l.take(false); s != nil; s = l.take(false) {
		if s.putBack(ctx) == nil {
			return s, nil
		}
		s.remove()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return l.another(ctx)
}

// Fresh starts an unused sandbox. It first removes an idle sandbox, if any, so that the number of
// running sandboxes does not grow.
func (l *Lab) Fresh(ctx context.Context) (*Sandbox, error) {
	if s := l.take(true); s != nil {
		s.remove()
	}
	return l.another(ctx)
}

// another starts a new sandbox in the initial state.
func (l *Lab) another(ctx context.Context) (*Sandbox, error) {
	dir := l.next()
	if err := l.base().CopyTo(ctx, dir); err != nil {
		return nil, err
	}
	return l.up(ctx, dir, false)
}

// take removes and returns an idle sandbox: the longest idle if `first` is set, and the most
// recently used otherwise. It returns nil if no sandbox is idle.
func (l *Lab) take(first bool) *Sandbox {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.idle) == 0 {
		return nil
	}
	i := len(l.idle) - 1
	if first {
		i = 0
	}
	s := l.idle[i]
	l.idle = slices.Delete(l.idle, i, i+1)
	return s
}

// Over ends a run. The sandbox becomes idle, or is removed if a fault has hit its control plane or
// if it has served mostRuns runs.
func (s *Sandbox) Over() {
	if s.runs++; s.spoilt || s.runs >= mostRuns {
		s.remove()
		return
	}
	s.since = time.Now()
	s.lab.mu.Lock()
	s.lab.idle = append(s.lab.idle, s)
	s.lab.mu.Unlock()
	if s.lab.idled != nil {
		s.lab.idled()
	}
}

// resting returns the number of idle sandboxes, and the time since which the longest idle sandbox
// has been idle.
func (l *Lab) resting() (int, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.idle) == 0 {
		return 0, time.Time{}
	}
	return len(l.idle), l.idle[0].since
}

// Close removes all idle sandboxes.
func (l *Lab) Close() {
	var removing sync.WaitGroup
	for s := l.take(false); s != nil; s = l.take(false) {
		removing.Go(s.remove)
	}
	removing.Wait()
}

// putBack restores the prepared state. It returns an error if a component has crashed, or if the
// run has added or removed kinds of objects, because the API server may notice this only after a
// delay. The caller must then remove the sandbox.
func (s *Sandbox) putBack(ctx context.Context) error {
	if err := s.Crash(); err != nil {
		return err
	}
	prepared := s.lab.prepared
	return s.withEtcd(ctx, func(etcd *clientv3.Client) error {
		now, err := snapshot.Take(ctx, etcd, cluster.KubernetesVersion())
		if err != nil {
			return err
		}
		if !prepared.SameKinds(now) {
			return errors.New("there are other kinds of objects")
		}
		if !now.Has(prepared) {
			// The run has deleted prepared objects. Stop the controllers while these objects are
			// restored, because running controllers may remember the deletion.
			return s.dir.Control().Without(ctx, func() error {
				_, err := prepared.Restore(ctx, etcd)
				return err
			})
		}
		// Restore the state until the controllers no longer react to its restoration with writes.
		ctx, cancel := context.WithTimeout(ctx, leaving)
		defer cancel()
		for {
			if _, err := prepared.Restore(ctx, etcd); err != nil {
				return err
			}
			if err := snapshot.Quiet(ctx, etcd, left); err != nil {
				return err
			}
			if now, err = snapshot.Take(ctx, etcd, cluster.KubernetesVersion()); err != nil {
				return err
			}
			if prepared.Has(now) && now.Has(prepared) {
				return nil
			}
		}
	})
}

// Crash returns the error of a crashed component, or nil. Each crash is returned only once.
func (s *Sandbox) Crash() error {
	select {
	case err := <-s.crashed:
		return err
	default:
		return nil
	}
}

// patient is the timeout for starting a sandbox. It is long because verdicts must not depend on the
// machine's load. If a component crashes during the start, the crash is reported earlier.
const patient = 15 * time.Minute

// left is the time without writes after which controllers are assumed to have finished reacting to
// the removal of the run's objects. leaving is the maximum time to wait until they have finished.
const (
	left    = 300 * time.Millisecond
	leaving = 5 * time.Second
)

func (s *Sandbox) withEtcd(ctx context.Context, do func(*clientv3.Client) error) error {
	etcd, err := s.dir.Etcd(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(etcd), etcd.Close())
}

func (l *Lab) up(ctx context.Context, dir cluster.Dir, fresh bool) (*Sandbox, error) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Sandbox{dir: dir, stop: stop, ended: make(chan error, 1), crashed: make(chan error, 8), lab: l}
	ready := make(chan struct{})
	s.running.Go(func() {
		s.ended <- cluster.Run(running, cluster.Options{
			Dir: dir, Nodes: *l.workload.Nodes, Fresh: fresh, Delays: kubelet.DefaultDelays(), PodEvents: true,
			WithoutControllers: l.workload.WithoutControllers, StartTimeout: patient,
			Ready:   func(cluster.Status) { close(ready) },
			Crashed: func(e supervisor.Exit) { s.crashed <- errors.New(cluster.Describe(e)) },
		})
	})
	select {
	case <-ready:
	case err := <-s.ended:
		stop()
		if err == nil {
			err = errors.New("it has stopped")
		}
		return nil, fmt.Errorf("the sandbox: %w", err)
	case <-ctx.Done():
		s.down()
		return nil, ctx.Err()
	}
	var err error
	if s.Config, err = dir.RESTConfig(); err != nil {
		s.down()
		return nil, err
	}
	s.Config.QPS = -1
	return s, nil
}

// down stops the sandbox but keeps its directory.
func (s *Sandbox) down() {
	s.stop()
	s.running.Wait()
}

// remove stops the sandbox and removes its directory.
func (s *Sandbox) remove() {
	s.down()
	_ = os.RemoveAll(string(s.dir))
}

// Kubectl runs kubectl with administrator rights. The given input becomes kubectl's stdin.
func (s *Sandbox) Kubectl(ctx context.Context, input string, args ...string) error {
	return s.Command(ctx, input, filepath.Join(s.lab.bin, component.Kubectl), args...)
}

// Command runs a program with the sandbox's kubeconfig, which has administrator rights. The given
// input becomes the program's stdin. A returned error contains the program's output.
func (s *Sandbox) Command(ctx context.Context, input, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.dir.Kubeconfig(), "PATH="+s.lab.path())
	command.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	// Run the program in its own process group, so that its child processes are killed with it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = time.Second
	if err := command.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(out.String()))
	}
	return nil
}
