// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options declares the settings of the manager and of its controllers. A single call
// declares a setting's variable, flag, default, allowed values, and description in --help and
// docs/reference.
//
//	func (o *Options) group() *options.Group {
//		g := options.NewGroup("node pools")
//		g.Int(&o.NodeConcurrency, "node-concurrency", 32, options.Between(1, 1024),
//			"maximum number of nodes updated concurrently")
//		return g
//	}
package options
