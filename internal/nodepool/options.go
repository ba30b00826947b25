// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"time"

	"tidekeeper.dev/tidekeeper/internal/options"
)

// Options configure the NodePool controllers.
type Options struct {
	// NodeConcurrency is the maximum number of nodes patched at the same time. Lower it if changes
	// to large pools overload the API server.
	NodeConcurrency int
	// StatusInterval is the minimum time between two writes of a pool's status that update only its
	// resource sums. Changes of membership, readiness and conditions are written within a second.
	// Raise the interval in large clusters with frequent pod changes.
	StatusInterval time.Duration
	// NoExecuteShare is the maximum percentage of a pool's nodes, and of all nodes, from which new
	// NoExecute taints may be evicting pods at the same time. At least one node is always allowed.
	NoExecuteShare int
	// NoExecuteInterval is the minimum time for which a node with a new NoExecute taint counts
	// towards NoExecuteShare.
	NoExecuteInterval time.Duration
}

// group declares the options as command-line flags of the manager.
func (o *Options) group() *options.Group {
	g := options.NewGroup("node pools")
	g.Int(&o.NodeConcurrency, "node-concurrency", 32, options.Between(1, 1024),
		"maximum number of nodes updated concurrently")
	g.Duration(&o.StatusInterval, "status-interval", 5*time.Second, options.Between(100*time.Millisecond, time.Hour),
		"minimum time between two status writes of a pool that only update its resource sums")
	g.Int(&o.NoExecuteShare, "no-execute-share", 10, options.Between(1, 100),
		"maximum `percent` of a pool's nodes, and of all nodes, that new NoExecute taints may be evicting pods from at the same time; at least one node")
	g.Duration(&o.NoExecuteInterval, "no-execute-interval", 30*time.Second, options.Between(100*time.Millisecond, 24*time.Hour),
		"minimum time for which a node with a new NoExecute taint counts towards --no-execute-share")
	return g
}
