// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// DrainedForMaintenanceAnnotation on a node says that the node is drained for a NodeMaintenance,
// whose name is the value. Removing the annotation tells the manager that the maintenance is done.
const DrainedForMaintenanceAnnotation = "tidekeeper.dev/drained-for-maintenance"

// CordonedForMaintenanceAnnotation on a node says that the manager cordoned the node. Its value is
// the UID of the NodeMaintenance. Only a node with this annotation is uncordoned.
const CordonedForMaintenanceAnnotation = "tidekeeper.dev/cordoned-for-maintenance"

// DrainedLabel on a node has the value "true" while the node is drained for a NodeMaintenance, so
// that a DaemonSet can run there and nowhere else.
const DrainedLabel = "tidekeeper.dev/drained"

// NodeMaintenanceFinalizer keeps a deleted NodeMaintenance until its nodes are uncordoned.
const NodeMaintenanceFinalizer = "tidekeeper.dev/node-maintenance"
