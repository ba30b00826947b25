// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"

	"tidekeeper.dev/tidekeeper/sandbox/internal/incluster"
)

// Labs are the sandboxes of several explorers in one process. Explorers whose runs begin in the same
// state share a lab: that state is made once, and a sandbox whose run is over is the next one's,
// whichever explorer that belongs to.
type Labs struct {
	scratch *Scratch
	// mostIdle is how many sandboxes are kept that no run has.
	mostIdle int

	mu     sync.Mutex
	shared map[string]*sharedLab
	made   []*Lab
	// sweeps end what operators have left behind, of each lab.
	sweeps []func()
}

// sharedLab is a lab that is nil until it was made, by the first explorer that needs it.
type sharedLab struct {
	making sync.Mutex
	lab    *Lab
}

// NewLabs makes labs in a directory, which keep no more idle sandboxes than that.
func NewLabs(dir string, mostIdle int) (*Labs, error) {
	s, err := NewScratch(dir)
	return &Labs{scratch: s, mostIdle: mostIdle, shared: map[string]*sharedLab{}}, err
}

// Close stops the sandboxes, and removes them. No explorer may use them any more.
func (l *Labs) Close() {
	l.trim(0)
	for _, sweep := range l.sweeps {
		sweep()
	}
	l.scratch.Remove()
}

// Lab returns the lab for an explorer.
func (l *Labs) Lab(ctx context.Context, s *Setup, progress io.Writer) (*Lab, error) {
	state, err := s.beginning()
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
		return shared.lab, shared.lab.show(ctx, s.Installed)
	}
	dir, err := os.MkdirTemp(l.scratch.Dir, "lab-")
	if err != nil {
		return nil, err
	}
	sweep, err := incluster.StartSweeper(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	made, err := s.MakeLab(ctx, dir, progress)
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

// show has an explorer look at the installed objects, which it may refuse.
func (l *Lab) show(ctx context.Context, installed func(context.Context, dynamic.Interface) error) error {
	if installed == nil {
		return nil
	}
	s, err := l.Begin(ctx)
	if err != nil {
		return err
	}
	defer s.Over()
	client, err := dynamic.NewForConfig(s.Config)
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
		var in *Lab
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
