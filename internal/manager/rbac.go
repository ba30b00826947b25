// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

// The rights of the manager, each with what needs it. `make generate` writes
// config/rbac/role.yaml from them. The rights to check who reads the metrics
// are not here but in config/rbac/metrics_auth_role.yaml, for those who serve
// metrics another way.

// nodepool: members are chosen and counted, and brought into shape by one
// patch each. Nodes are never created, replaced or deleted.
//
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch

// nodepool: what the pods on a node request is the pool's water level.
// pod-startup: how they come up. pod-count: how many a ReplicaSet has. Pods are
// only read.
//
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch

// nodepool: the pools themselves; patch puts the finalizer on and takes it off.
//
// +kubebuilder:rbac:groups=tidekeeper.dev,resources=nodepools,verbs=get;list;watch;patch

// nodepool: status and conditions.
//
// +kubebuilder:rbac:groups=tidekeeper.dev,resources=nodepools/status,verbs=patch

// nodepool: a RuntimeClass names its pool as an owner that must not go first.
// Where the admission plugin OwnerReferencesPermissionEnforcement is on, that
// needs the right to set the owner's finalizers.
//
// +kubebuilder:rbac:groups=tidekeeper.dev,resources=nodepools/finalizers,verbs=update

// nodepool: the RuntimeClass of a pool. Its handler cannot be changed, so a
// new handler means delete and create.
//
// +kubebuilder:rbac:groups=node.k8s.io,resources=runtimeclasses,verbs=get;list;watch;create;patch;delete

// scheduled-restart: a restart is one patch of the pod template; how it goes
// on is read from the status. restart-opt-in: the annotations of a workload,
// read only. Workloads are never created, replaced or deleted.
//
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets,verbs=get;list;watch;patch

// restart-opt-in: the annotation of a workload makes a ScheduledRestart, which
// follows it and goes with it. It is written by server-side apply: patch, which
// needs create where there is none yet. scheduled-restart reads them.
//
// That a ScheduledRestart names its workload as an owner needs no right to set
// finalizers, not even with the admission plugin
// OwnerReferencesPermissionEnforcement, as the workload may go first.
//
// +kubebuilder:rbac:groups=tidekeeper.dev,resources=scheduledrestarts,verbs=get;list;watch;create;patch;delete

// scheduled-restart: status and conditions.
//
// +kubebuilder:rbac:groups=tidekeeper.dev,resources=scheduledrestarts/status,verbs=patch

// pod-count: the label pod-count, by one patch when it differs. Without that
// controller, which is off by default, this right can be taken away.
//
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch;patch

// all: events. The recorder creates an event, and patches its series when the
// same happens again; it never sends an update.
//
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// leader election: one Lease, in the manager's own namespace. A right to
// create cannot be bound to a name, as the name is not known yet then.
//
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=tidekeeper-system,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=tidekeeper,namespace=tidekeeper-system,verbs=get;update

// leader election: who leads is told by an event beside the Lease, still in
// the old event API.
//
// +kubebuilder:rbac:groups="",resources=events,namespace=tidekeeper-system,verbs=create;patch
