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

// Labs are the sandboxes of several explorers in a process. Explorers whose runs begin in the
// same state share a Lab: the state is prepared once, and any of these explorers may reuse a
// sandbox whose run is over.
type Labs struct {
	scratch *Scratch
	// mostIdle is the maximum number of idle sandboxes.
	mostIdle int

	mu     sync.Mutex
	shared map[string]*sharedLab
	made   []*Lab
	// sweeps kill the processes that operators have left running, for each lab.
	sweeps []func()
}

// sharedLab holds a lab, which the first explorer that needs it creates. Until then, lab is
// nil.
type sharedLab struct {
	making sync.Mutex
	lab    *Lab
}

// NewLabs returns labs in a directory, with at most mostIdle idle sandboxes.
func NewLabs(dir string, mostIdle int) (*Labs, error) {
	s, err := NewScratch(dir)
	return &Labs{scratch: s, mostIdle: mostIdle, shared: map[string]*sharedLab{}}, err
}

// Close stops and removes the sandboxes. Explorers that use the labs must be done.
func (l *Labs) Close() {
	l.trim(0)
	for _, sweep := range l.sweeps {
		sweep()
	}
	l.scratch.Remove()
}

// Lab returns the lab for a setup, and prepares its state if no other explorer has done so.
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

// show passes the installed objects to installed, and returns its error.
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

// trim removes idle sandboxes until there are at most that many, the longest idle sandboxes
// first.
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
