// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install tests the objects that the chart and the kustomization install, on a real control
// plane and with the real Helm. An installation must work, and an uninstall must leave nothing
// behind.
//
// The sandbox's kubelets do not run containers. The manager and the programs in the pods of Helm's
// hooks therefore run as processes outside the cluster, with the pods' arguments and with tokens
// for the service accounts that the installation created.
package install
