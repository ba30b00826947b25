// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node runs the manager's image on a real node of a sandbox: a real kubelet,
// containerd and runc. Where the machine cannot run one, the tests are skipped, and say
// what is missing.
package node
