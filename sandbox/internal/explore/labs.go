// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"

	"tidekeeper.dev/tidekeeper/sandbox/internal/incluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// Labs are the sandboxes of several explorers in one process. Explorers whose runs begin in the same
// state share a lab: that state is made once, and a sandbox whose run is over is the next one's,
// whichever explorer that belongs to.
type Labs struct {
	scratch *scratch
	// mostIdle is how many sandboxes are kept that no run has.
	mostIdle int

	mu     sync.Mutex
	shared map[string]*sharedLab
	made   []*lab
	// sweeps end what operators have left behind, of each lab.
	sweeps []func()
}

// sharedLab is a lab that is nil until it was made, by the first explorer that needs it.
type sharedLab struct {
	making sync.Mutex
	lab    *lab
}

// NewLabs makes labs in a directory, which keep no more idle sandboxes than that.
func NewLabs(dir string, mostIdle int) (*Labs, error) {
	s, err := newScratch(dir)
	return &Labs{scratch: s, mostIdle: mostIdle, shared: map[string]*sharedLab{}}, err
}

// Close stops the sandboxes, and removes them. No explorer may use them any more.
func (l *Labs) Close() {
	l.trim(0)
	for _, sweep := range l.sweeps {
		sweep()
	}
	l.scratch.remove()
}

// lab returns the lab for an explorer.
func (l *Labs) lab(ctx context.Context, e *Explorer, progress io.Writer) (*lab, error) {
	state, err := e.beginning()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	shared := l.shared[state]
	if shared == nil {
		shared = &sharedLab{}
		l.shared[state] = shared
	}
	l.mu.Unlock()
	shared.making.Lock()
	defer shared.making.Unlock()
	if shared.lab != nil {
		return shared.lab, shared.lab.show(ctx, e.Installed)
	}
	dir, err := os.MkdirTemp(l.scratch.dir, "lab-")
	if err != nil {
		return nil, err
	}
	sweep, err := incluster.StartSweeper(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	made, err := e.makeLab(ctx, dir, progress)
	if err != nil {
		sweep()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	made.idled = func() { l.trim(l.mostIdle) }
	shared.lab = made
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made, l.sweeps = append(l.made, made), append(l.sweeps, sweep)
	return made, nil
}

// beginning describes the state in which the runs of an explorer begin, and what runs there.
func (e *Explorer) beginning() (string, error) {
	w := e.Workload
	about, err := results.NewAbout(nil, nil, w.Install, nil, nil)
	if err != nil {
		return "", err
	}
	parts := []any{about.Contents, *w.Nodes, w.WithoutControllers, w.ServiceAccount, w.HostNetwork}
	if *w.Nodes > 0 {
		parts = append(parts, e.Command) // It has a Pod, which is named after it.
	}
	text, err := json.Marshal(parts)
	return string(text), err
}

// show has an explorer look at what is installed, which it may refuse.
func (l *lab) show(ctx context.Context, installed func(context.Context, dynamic.Interface) error) error {
	if installed == nil {
		return nil
	}
	s, err := l.begin(ctx)
	if err != nil {
		return err
	}
	defer s.over()
	client, err := dynamic.NewForConfig(s.config)
	if err != nil {
		return err
	}
	return installed(ctx, client)
}

// trim removes idle sandboxes until there are no more than that: first those that were idle for
// longest.
func (l *Labs) trim(most int) {
	l.mu.Lock()
	made := slices.Clone(l.made)
	l.mu.Unlock()
	for {
		n, oldest := 0, time.Time{}
		var in *lab
		for _, lab := range made {
			idle, since := lab.resting()
			n += idle
			if idle > 0 && (in == nil || since.Before(oldest)) {
				in, oldest = lab, since
			}
		}
		if n <= most {
			return
		}
		if s := in.takeFirst(); s != nil {
			s.remove()
		}
	}
}
