// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

// The rights of the manager, each with what needs it. `make generate` writes
// config/rbac/role.yaml from them, and the chart's copy of it: a role for each
// controller, named after it, so that who leaves a controller out need not grant
// what it needs. A test holds them against what is asked for.
//
// Where a kind is watched, list is for API servers that do not stream their
// lists to watches. The rights to check who reads the metrics are not here but
// in config/rbac/metrics_auth_role.yaml, for those who serve metrics another way.

// nodepool: members are chosen and counted, and brought into shape by one
// patch each. Nodes are never created, replaced or deleted.
//
// +kubebuilder:rbac:roleName=tidekeeper-nodepool,groups="",resources=nodes,verbs=list;watch;patch

// nodepool: what the pods on a node request is the pool's water level. Pods are
// only read.
//
// +kubebuilder:rbac:roleName=tidekeeper-nodepool,groups="",resources=pods,verbs=list;watch

// nodepool: the pools themselves; patch puts the finalizer on and takes it off.
//
// +kubebuilder:rbac:roleName=tidekeeper-nodepool,groups=tidekeeper.dev,resources=nodepools,verbs=list;watch;patch

// nodepool: status and conditions.
//
// +kubebuilder:rbac:roleName=tidekeeper-nodepool,groups=tidekeeper.dev,resources=nodepools/status,verbs=patch

// nodepool: a RuntimeClass names its pool as an owner that must not go first.
// Where the admission plugin OwnerReferencesPermissionEnforcement is on, that
// needs the right to set the owner's finalizers.
//
// +kubebuilder:rbac:roleName=tidekeeper-nodepool,groups=tidekeeper.dev,resources=nodepools/finalizers,verbs=update

// nodepool: the RuntimeClass of a pool. Its handler cannot be changed, so a
// new handler means delete and create.
//
// +kubebuilder:rbac:roleName=tidekeeper-nodepool,groups=node.k8s.io,resources=runtimeclasses,verbs=list;watch;create;patch;delete

// scheduled-restart: a restart is one patch of the pod template; how it goes
// on is read from the status. Before a restart is told to have been set back,
// the workload is read past the cache. Workloads are never created, replaced or
// deleted.
//
// +kubebuilder:rbac:roleName=tidekeeper-scheduled-restart,groups=apps,resources=deployments;statefulsets;daemonsets,verbs=get;list;watch;patch

// scheduled-restart: when to restart what.
//
// +kubebuilder:rbac:roleName=tidekeeper-scheduled-restart,groups=tidekeeper.dev,resources=scheduledrestarts,verbs=list;watch

// scheduled-restart: status and conditions.
//
// +kubebuilder:rbac:roleName=tidekeeper-scheduled-restart,groups=tidekeeper.dev,resources=scheduledrestarts/status,verbs=patch

// restart-opt-in: the annotations of a workload, read only; past the cache before
// a ScheduledRestart is given an owner.
//
// +kubebuilder:rbac:roleName=tidekeeper-restart-opt-in,groups=apps,resources=deployments;statefulsets;daemonsets,verbs=get;list;watch

// restart-opt-in: the annotation of a workload makes a ScheduledRestart, which
// follows it and goes with it. It is written by server-side apply: patch, which
// needs create where there is none yet.
//
// That a ScheduledRestart names its workload as an owner needs no right to set
// finalizers, not even with the admission plugin
// OwnerReferencesPermissionEnforcement, as the workload may go first.
//
// +kubebuilder:rbac:roleName=tidekeeper-restart-opt-in,groups=tidekeeper.dev,resources=scheduledrestarts,verbs=list;watch;create;patch;delete

// pod-startup: how pods come up, and on nodes of which pool.
//
// +kubebuilder:rbac:roleName=tidekeeper-pod-startup,groups="",resources=pods;nodes,verbs=list;watch
// +kubebuilder:rbac:roleName=tidekeeper-pod-startup,groups=tidekeeper.dev,resources=nodepools,verbs=list;watch

// pod-count: the label pod-count, by one patch when it differs. That controller
// is off by default, and so is this role bound only if asked for.
//
// +kubebuilder:rbac:roleName=tidekeeper-pod-count,groups=apps,resources=replicasets,verbs=list;watch;patch
// +kubebuilder:rbac:roleName=tidekeeper-pod-count,groups="",resources=pods,verbs=list;watch

// all: events. The recorder creates an event, and patches its series when the
// same happens again; it never sends an update. Those about a NodePool, which is
// in no namespace, are in the namespace default.
//
// +kubebuilder:rbac:roleName=tidekeeper-events,groups=events.k8s.io,resources=events,verbs=create;patch

// leader election: one Lease, in the manager's own namespace. A right to
// create cannot be bound to a name, as the name is not known yet then.
//
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=tidekeeper-system,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=tidekeeper,namespace=tidekeeper-system,verbs=get;update

// leader election: who leads is told by an event beside the Lease, still in
// the old event API.
//
// +kubebuilder:rbac:groups="",resources=events,namespace=tidekeeper-system,verbs=create
