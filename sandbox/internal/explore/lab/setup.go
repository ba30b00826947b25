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

// Setup describes the state in which runs begin, and the operator in them.
type Setup struct {
	Workload *workload.Workload
	Command  []string
	// Installed, unless it is nil, looks at the installed objects, and may refuse them.
	Installed func(context.Context, dynamic.Interface) error
}

// beginning describes the state in which the runs with a setup begin, and what runs there.
func (s *Setup) beginning() (string, error) {
	w := s.Workload
	about, err := results.NewAbout(nil, nil, w.Install, nil, nil)
	if err != nil {
		return "", err
	}
	parts := []any{about.Contents, *w.Nodes, w.WithoutControllers, w.ServiceAccount, w.HostNetwork}
	if *w.Nodes > 0 {
		parts = append(parts, s.Command) // It has a Pod, which is named after it.
	}
	text, err := json.Marshal(parts)
	return string(text), err
}

// MakeLab makes a lab in a directory, with the state that all runs begin with.
func (s *Setup) MakeLab(ctx context.Context, dir string, progress io.Writer) (*Lab, error) {
	lab, err := New(dir, s.Workload)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(progress, "Installing.")
	return lab, lab.prepare(ctx, s.Command, s.Installed)
}
