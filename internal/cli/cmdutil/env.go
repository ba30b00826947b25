// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"io"
	"time"
)

// Env is the environment in which a command runs: the terminal, the connection to the cluster, the
// clock and the time zone.
type Env struct {
	In         io.Reader
	Console    Console
	Kubeconfig Kubeconfig
	Now        func() time.Time
	Local      *time.Location
}
