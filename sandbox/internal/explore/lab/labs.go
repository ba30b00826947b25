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

// Labs manages the sandboxes of several explorers in a single process. Explorers with the same
// initial state share a Lab: the state is prepared only once, and each explorer can reuse any of
// the Lab's idle sandboxes.
type Labs struct {
	scratch *Scratch
	// mostIdle is the maximum number of idle sandboxes across all labs.
	mostIdle int

	mu     sync.Mutex
	shared map[string]*sharedLab
	made   []*Lab
	// sweeps contains a function for each lab, which kills the processes that the lab's operators
	// have left behind.
	sweeps []func()
}

// sharedLab holds the lab of an initial state. lab is nil until the first explorer has created it.
type sharedLab struct {
	making sync.Mutex
	lab    *Lab
}

// NewLabs returns a Labs with at most mostIdle idle sandboxes. It keeps its files in a new
// directory below `dir`.
func NewLabs(dir string, mostIdle int) (*Labs, error) {
	s, err := NewScratch(dir)
	return &Labs{scratch: s, mostIdle: mostIdle, shared: map[string]*sharedLab{}}, err
}

// Close stops and removes all sandboxes. The explorers that use them must have finished.
func (l *Labs) Close() {
	l.trim(0)
	for _, sweep := range l.sweeps {
		sweep()
	}
	l.scratch.Remove()
}

// Lab returns a setup's lab. The first call for an initial state prepares the lab.
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

// show calls the function `installed`, unless nil, with a client for a sandbox of the lab. It
// returns the error of this function.
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

// trim removes the longest idle sandboxes across all labs, until at most `most` idle sandboxes
// remain.
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
		if s := in.take(true); s != nil {
			s.remove()
		}
	}
}
