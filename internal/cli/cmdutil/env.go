// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"io"
	"time"
)

// Env is the environment of a run of the plugin: the terminal, the cluster and the clock.
type Env struct {
	In         io.Reader
	Console    Console
	Kubeconfig Kubeconfig
	Now        func() time.Time
	Local      *time.Location
}
