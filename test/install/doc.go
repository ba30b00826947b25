// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install tests what the chart and the kustomization install, and that an
// installation works and leaves nothing behind, on a real control plane and with the
// real helm.
//
// The sandbox's kubelets do not run containers. The manager, and what Helm runs in pods,
// are processes outside the cluster, with the arguments of the pods and with tokens of
// the service accounts that the installation created.
package install
