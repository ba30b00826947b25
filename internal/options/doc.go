// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options declares the settings of the manager and of its controllers: one
// call for each says where it is stored, its flag, its default, what values it may
// have, and what --help and docs/reference say about it.
//
//	func (o *Options) group() *options.Group {
//		g := options.NewGroup("node pools")
//		g.Int(&o.NodeConcurrency, "node-concurrency", 32, options.Between(1, 1024),
//			"maximum number of nodes updated concurrently")
//		return g
//	}
package options
