// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node runs the manager's image on a real node of a sandbox, with a real kubelet,
// containerd and runc. If the machine cannot run a real node, the tests are skipped with the
// reason.
package node
