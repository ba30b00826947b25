// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install shows what the chart and the kustomization install, and that
// an installation works and leaves nothing behind, on a real control plane and
// with the real helm.
//
// The sandbox's kubelets run no containers. So the manager, and what Helm runs
// in pods, run beside the cluster as processes, with the arguments that the pods
// have and with tokens of the service accounts that the installation has made.
package install
