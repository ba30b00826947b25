// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package framework runs the real binaries for black-box tests: a sandbox with
// a real control plane, and managers that use it, each as a process that a test can
// stop, kill and start again.
//
//	func TestMain(m *testing.M) { os.Exit(framework.Main(m, &cluster, "--audit")) }
//
//	func TestSomething(t *testing.T) {
//		manager := cluster.StartManager(t)
//		cluster.Apply(t, pool)
//		framework.Eventually(t, "the pool has its nodes", func() error { … })
//		manager.Kill(t)
//	}
//
// The binaries are the files in bin/ that make build writes, unless SANDBOX_BIN and
// TIDEKEEPER_BIN name others.
package framework
