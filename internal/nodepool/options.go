// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"time"

	"tidekeeper.dev/tidekeeper/internal/options"
)

// Options are the settings of node pools.
type Options struct {
	// NodeConcurrency is the maximum number of nodes patched at the same time. Lower it if a
	// change of a large pool overloads the API server.
	NodeConcurrency int
	// StatusInterval is the minimum time between two status writes of a pool that only update
	// its resource sums; membership, readiness and conditions are written at once. Raise it in
	// large clusters with frequent pod changes.
	StatusInterval time.Duration
	// NoExecuteShare is the percentage of a pool's nodes, and of all nodes, that may get a new
	// NoExecute taint in one NoExecuteInterval, but at least one node. Such a taint evicts
	// pods.
	NoExecuteShare int
	// NoExecuteInterval is the minimum time for which a node counts as being emptied.
	NoExecuteInterval time.Duration
}

// group declares the options.
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
