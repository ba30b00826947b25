// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/nodes"
)

// Node holds the facts about a Node that decisions depend on.
type Node struct {
	Name string
	UID  types.UID
	Zone string
	// Group is the index of the node's pool in spec.nodes.pools, or 0 if the spec names no pools.
	Group                          int
	Ready, Unschedulable, Deleting bool
	// CordonedFor is the UID of the NodeMaintenance that the node is cordoned for, and DrainedFor
	// is the name of the NodeMaintenance that the node is drained for. They are empty if the node
	// lacks the annotation that holds them.
	CordonedFor, DrainedFor string
	// DueFor is the UID of the NodeMaintenance in the taint [tidekeeperv1.MaintenanceDueTaint] of the
	// node, or empty if the node lacks this taint.
	DueFor string
	// Labeled is true if the node has the label [tidekeeperv1.DrainedLabel].
	Labeled                bool
	BootID, KubeletVersion string
	Created                time.Time
	// Foreign names another program that is draining or removing the node, such as Karpenter. It is
	// empty if there is none.
	Foreign string
}

// foreignTaints maps the keys of the taints with which other programs mark nodes that they drain or
// remove to the names of the programs.
var foreignTaints = map[string]string{
	"ToBeDeletedByClusterAutoscaler": "the cluster autoscaler",
	"karpenter.sh/disrupted":         "Karpenter",
}

// foreignAnnotations maps the keys of the annotations with which other programs mark nodes that
// they drain to the names of the programs.
var foreignAnnotations = map[string]string{
	"weave.works/kured-reboot-in-progress": "kured",
}

// NodeOf returns the facts about a node. group becomes its field Group.
func NodeOf(n *corev1.Node, group int) Node {
	node := Node{
		Name: n.Name, UID: n.UID, Zone: n.Labels[corev1.LabelTopologyZone], Group: group,
		Ready: nodes.IsReady(n), Unschedulable: n.Spec.Unschedulable, Deleting: !n.DeletionTimestamp.IsZero(),
		CordonedFor: n.Annotations[tidekeeperv1.CordonedForMaintenanceAnnotation], DrainedFor: n.Annotations[tidekeeperv1.DrainedForMaintenanceAnnotation],
		BootID: n.Status.NodeInfo.BootID, KubeletVersion: n.Status.NodeInfo.KubeletVersion, Created: n.CreationTimestamp.Time,
	}
	_, node.Labeled = n.Labels[tidekeeperv1.DrainedLabel]
	for _, taint := range n.Spec.Taints {
		if who := foreignTaints[taint.Key]; who != "" {
			node.Foreign = who
		}
		if taint.Key == tidekeeperv1.MaintenanceDueTaint {
			node.DueFor = taint.Value
		}
	}
	for key, who := range foreignAnnotations {
		if strings.TrimSpace(n.Annotations[key]) != "" {
			node.Foreign = who
		}
	}
	return node
}

// Drain is the state of the pods of a node whose drain has begun.
type Drain struct {
	UID types.UID
	// Empty is true if the node has no more pods that the drain must move.
	Empty bool
	// Settled is true if all pods of DaemonSets on the node are ready.
	Settled bool
	// Reason and Message describe the pods that block the drain of the node. Both are empty if all
	// pods are leaving.
	Reason, Message string
}

// Input holds the facts that a decision about a NodeMaintenance depends on.
type Input struct {
	Maintenance *tidekeeperv1.NodeMaintenance
	Now         time.Time
	// Nodes holds, by name, the selected nodes, the nodes in the status, and all nodes that are
	// cordoned or marked as due for this NodeMaintenance. Nodes in maintenance are read from the API server: in a
	// cache that lags behind the status, annotations and labels that the manager has just added
	// would seem to have been removed.
	Nodes map[string]Node
	// Selected lists the names of the selected nodes, in the order in which they are to be
	// maintained.
	Selected []string
	// Frozen describes the Freeze in force, and is "" if there is none. FrozenUntil is the time at
	// which that Freeze ends.
	Frozen      string
	FrozenUntil time.Time
	// Drains maps the names of nodes that are being drained, or are waiting to become ready again,
	// to the state of their pods. Nodes whose state is unknown are missing.
	Drains map[string]Drain
	// HasPlace reports whether the other nodes, except for the nodes in `drained`, have room for
	// the pods of a node. It is called only for a node whose drain could otherwise begin.
	HasPlace func(node string, drained []string) bool
}

// ActionKind is a kind of change to a node.
type ActionKind string

// Kinds of changes to a node.
const (
	// MarkDue adds the taint [tidekeeperv1.MaintenanceDueTaint] to the node. UnmarkDue removes it, and
	// so do Cordon, Uncordon and Clean.
	MarkDue   ActionKind = "MarkDue"
	UnmarkDue ActionKind = "UnmarkDue"
	// Cordon makes the node unschedulable, and annotates it with the UID of the NodeMaintenance.
	Cordon ActionKind = "Cordon"
	// MarkDrained sets the annotation, the label and the node condition that mark a drained node.
	MarkDrained ActionKind = "MarkDrained"
	// Uncordon removes the annotations and the label of the maintenance, sets the node condition
	// Drained to False, and makes the node schedulable.
	Uncordon ActionKind = "Uncordon"
	// Clean is like Uncordon, but does not change whether the node is schedulable.
	Clean ActionKind = "Clean"
)

// Action is the next change to a node.
type Action struct {
	Kind ActionKind
	// Node is the node as the decision saw it. The action is obsolete if the node has changed since.
	Node Node
}

// Event is a change of a node's phase, to be recorded as an event.
type Event struct {
	Node            string
	Warning         bool
	Reason, Message string
}

// Output is a decision about a NodeMaintenance and its nodes.
type Output struct {
	Status  tidekeeperv1.NodeMaintenanceStatus
	Actions []Action
	Events  []Event
	// Draining lists the nodes whose pods must be moved now. Watched lists all nodes that the next
	// decision needs in [Input.Drains], including the nodes in Draining.
	Draining, Watched []string
	// Wake is the time at which the next decision is due even without an event. It is zero if only
	// an event makes a decision necessary.
	Wake time.Time
}

// Changed lists the nodes that the decision acts on, or whose progress it changes in more than the
// reason and message. It lists only nodes that were in maintenance before the decision, according
// to the given status.
func (o *Output) Changed(before *tidekeeperv1.NodeMaintenanceStatus) (names []string) {
	acted := map[string]bool{}
	for _, a := range o.Actions {
		acted[a.Node.Name] = true
	}
	for name, was := range before.Nodes {
		is, known := o.Status.Nodes[name]
		if IsRunning(was) && (acted[name] || !known || is.UID != was.UID || is.Phase != was.Phase || is.Cordoned != was.Cordoned || is.Marked != was.Marked) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
