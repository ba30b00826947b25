// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/kubelet"
	"tidekeeper.dev/tidekeeper/sandbox/internal/supervisor"
)

// lab makes sandboxes that all begin in the same state.
type lab struct {
	dir      string
	workload *Workload
	// bin is a directory in which kubectl is.
	bin string
	// account is the ServiceAccount that the operator has, empty for all rights; why says
	// which that is.
	account, why string
}

// sandbox is one that runs.
type sandbox struct {
	dir    cluster.Dir
	config *rest.Config
	stop   context.CancelFunc
	// running is over when it has stopped, and ended says why.
	running sync.WaitGroup
	ended   chan error
	// crashed has the components that crashed.
	crashed chan error
	lab     *lab
}

func newLab(dir string, w *Workload) (*lab, error) {
	l := &lab{dir: dir, workload: w, bin: filepath.Join(dir, "bin")}
	if err := os.MkdirAll(l.bin, 0o700); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{component.Kubectl, component.ControllerManager, component.Scheduler} {
		if err := os.Symlink(self, filepath.Join(l.bin, name)); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	return l, nil
}

// path is the PATH of commands: kubectl first.
func (l *lab) path() string { return l.bin + string(os.PathListSeparator) + os.Getenv("PATH") }

// prepare makes the state that all runs begin with: what is to be installed is, and all is
// at rest. Unless it is nil, installed is called with what then is there, and may refuse it.
func (l *lab) prepare(ctx context.Context, installed func(context.Context, dynamic.Interface) error) error {
	s, err := l.up(ctx, l.base(), true)
	if err != nil {
		return err
	}
	defer s.down()
	r, err := record(ctx, s.config, func(string) {})
	if err != nil {
		return err
	}
	for _, path := range l.workload.Install {
		flag := "-f"
		if _, err := os.Stat(filepath.Join(path, "kustomization.yaml")); err == nil {
			flag = "-k"
		}
		if err := s.kubectl(ctx, "", "apply", "--server-side", flag, path); err != nil {
			return fmt.Errorf("install %s: %w", path, err)
		}
		// What comes next may need it.
		if err := r.established(ctx); err != nil {
			return fmt.Errorf("install %s: %w", path, err)
		}
	}
	if installed != nil {
		if err := installed(ctx, r.client); err != nil {
			return err
		}
	}
	for time.Since(r.quietSince()) < 2*time.Second {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	l.account, l.why, err = accountFor(ctx, s.config, l.workload.ServiceAccount)
	return err
}

// establishing is how long a CustomResourceDefinition may take.
const establishing = 30 * time.Second

// established waits until all CustomResourceDefinitions are served.
func (r *recorder) established(ctx context.Context) error {
	definitions := r.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	over := time.After(establishing)
	for {
		list, err := definitions.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		waits := ""
		for i := range list.Items {
			v := Version{Object: &list.Items[i]}
			if values([]Fields{anonymizer{}.fields(&v)}, "status.conditions[Established].status") != "True" {
				waits = v.Object.GetName()
			}
		}
		if waits == "" {
			return nil
		}
		select {
		case <-time.After(look):
		case <-over:
			return fmt.Errorf("the CustomResourceDefinition %s was not established in %s", waits, establishing)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *lab) base() cluster.Dir { return cluster.Dir(filepath.Join(l.dir, "base")) }

// begin starts a sandbox in the prepared state.
func (l *lab) begin(ctx context.Context, name string) (*sandbox, error) {
	dir := cluster.Dir(filepath.Join(l.dir, name))
	if err := os.RemoveAll(string(dir)); err != nil {
		return nil, err
	}
	if err := l.base().CopyTo(dir); err != nil {
		return nil, err
	}
	return l.up(ctx, dir, false)
}

func (l *lab) up(ctx context.Context, dir cluster.Dir, fresh bool) (*sandbox, error) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &sandbox{dir: dir, stop: stop, ended: make(chan error, 1), crashed: make(chan error, 8), lab: l}
	ready := make(chan struct{})
	s.running.Go(func() {
		s.ended <- cluster.Run(running, cluster.Options{
			Dir: dir, Nodes: *l.workload.Nodes, Fresh: fresh, Delays: kubelet.DefaultDelays(), PodEvents: true,
			WithoutControllers: l.workload.WithoutControllers,
			Ready:              func(cluster.Status) { close(ready) },
			Crashed:            func(e supervisor.Exit) { s.crashed <- errors.New(cluster.Describe(e)) },
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
	if s.config, err = dir.RESTConfig(); err != nil {
		s.down()
		return nil, err
	}
	s.config.QPS = -1
	return s, nil
}

// down stops the sandbox. Its directory stays.
func (s *sandbox) down() {
	s.stop()
	s.running.Wait()
}

// remove stops the sandbox and removes its directory.
func (s *sandbox) remove() {
	s.down()
	_ = os.RemoveAll(string(s.dir))
}

// kubectl runs kubectl as the administrator.
func (s *sandbox) kubectl(ctx context.Context, input string, args ...string) error {
	return s.command(ctx, input, filepath.Join(s.lab.bin, component.Kubectl), args...)
}

func (s *sandbox) command(ctx context.Context, input, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.dir.Kubeconfig(), "PATH="+s.lab.path())
	command.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	// What a script has started ends with it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = time.Second
	if err := command.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(out.String()))
	}
	return nil
}
