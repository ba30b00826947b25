// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/client-go/dynamic"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
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
	return lab, lab.prepare(ctx, s.Command, s.Installed)
}
