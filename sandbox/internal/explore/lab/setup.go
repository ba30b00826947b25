// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/dynamic"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/incluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/snapshot"
)

// Setup describes an operator and the initial state of its runs.
type Setup struct {
	Workload *workload.Workload
	Command  []string
	// Installed, unless nil, checks the installed objects. If it returns an error, the preparation
	// of the lab fails.
	Installed func(context.Context, dynamic.Interface) error
}

// beginning returns a key for the initial state of the operator's runs. Setups with equal keys can
// share a lab.
func (s *Setup) beginning() (string, error) {
	w := s.Workload
	about, err := results.NewAbout(results.Inputs{Installed: w.Install})
	if err != nil {
		return "", err
	}
	parts := []any{about.Contents, *w.Nodes, w.WithoutControllers, w.ServiceAccount, w.HostNetwork, w.Ports()}
	if *w.Nodes > 0 {
		parts = append(parts, s.Command) // The Pod's name is derived from the command.
	}
	text, err := json.Marshal(parts)
	return string(text), err
}

// MakeLab creates a lab in a directory and prepares the initial state of the lab's runs.
func (s *Setup) MakeLab(ctx context.Context, dir string, progress io.Writer) (*Lab, error) {
	lab, err := New(dir, s.Workload)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(progress, "Installing.")
	return lab, s.prepare(ctx, lab)
}

// prepare creates the initial state of all runs in the first sandbox of a lab, and keeps it: the
// manifests are installed, the cluster is quiet, and the operator has a Pod.
func (s *Setup) prepare(ctx context.Context, l *Lab) error {
	first, err := l.up(ctx, l.next(), true)
	if err != nil {
		return err
	}
	if err := s.prepareIn(ctx, l, first); err != nil {
		first.remove()
		return err
	}
	l.idle = append(l.idle, first)
	return nil
}

// prepareIn creates the initial state of all runs in the given sandbox, which is new, and keeps it: as a
// snapshot, and as the data directory of further sandboxes.
func (s *Setup) prepareIn(ctx context.Context, l *Lab, first *Sandbox) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // It ends the recorder.
	r, err := observe.Start(ctx, first.Config, &observe.Habits{}, func(string) {})
	if err != nil {
		return err
	}
	for _, path := range s.Workload.Install {
		if err := l.install(ctx, first, r, path); err != nil {
			return fmt.Errorf("install %s: %w", path, err)
		}
	}
	if s.Installed != nil {
		if err := s.Installed(ctx, r.Client); err != nil {
			return err
		}
	}
	if err := awaitInstalled(ctx, r); err != nil {
		return err
	}
	if l.account, l.from, l.Why, err = accountFor(ctx, first.Config, s.Workload.ServiceAccount); err != nil {
		return err
	}
	if l.account == "" {
		if err := makeAdministrator(ctx, first.Config); err != nil {
			return err
		}
	}
	if err := incluster.Permitted(); err != nil {
		l.Alone = true
		l.Why += " It only finds the API server by KUBECONFIG, not as in a pod, and has the network of this machine: " + err.Error() + "."
	} else if err := l.makePod(ctx, first, s.Command); err != nil {
		return err
	}
	if err := l.unserved(ctx, r.Client); err != nil {
		return err
	}
	if _, apis, err := observe.ResourcesOf(first.Config); err != nil {
		return err
	} else if len(apis) > 0 {
		l.Warnings = append(l.Warnings, fmt.Sprintf("%s: an APIService is installed for it, which nothing serves here, so its objects are not looked at", strings.Join(apis, ", ")))
	}
	if err := first.Crash(); err != nil {
		return err
	}
	// The controllers of a new sandbox find all installed kinds at once. Those of this one look for new
	// kinds every 30 seconds, so they must be started again.
	return first.dir.Control().Without(ctx, func() error {
		err := first.withEtcd(ctx, func(etcd *clientv3.Client) (err error) {
			l.prepared, err = snapshot.Take(ctx, etcd, cluster.KubernetesVersion())
			return err
		})
		return errors.Join(err, first.dir.CopyTo(ctx, l.base()))
	})
}
