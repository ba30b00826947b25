// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sample derives the nodeTemplate of a NodePool from objects that describe the pool's
// nodes. Such objects are nodes, Karpenter's NodePools and NodeClaims, and the objects of Cluster
// API whose annotations specify the size of nodes for the cluster autoscaler. The package has no
// client.
//
//	sample.go      combines several samples into a template
//	karpenter.go   reads samples from Karpenter's objects
//	clusterapi.go  reads samples from Cluster API's objects
package sample

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// node is a sample, that is, the resource amounts, labels and taints of the nodes that an object
// describes.
type node struct {
	// allocatable holds the resource amounts that each node offers to pods. It is nil if the object
	// does not specify them.
	allocatable corev1.ResourceList
	labels      map[string]string
	taints      []corev1.Taint
}

// source lists the kinds of objects in an API group that describe nodes, and the function that
// reads a sample from such an object.
type source struct {
	group string
	kinds []string
	read  func(*unstructured.Unstructured) (node, error)
}

var sources = []source{
	{"", []string{"Node"}, ofNode},
	{"karpenter.sh", []string{"NodePool"}, ofKarpenterPool},
	{"karpenter.sh", []string{"NodeClaim"}, ofNodeClaim},
	{"cluster.x-k8s.io", []string{"MachineDeployment", "MachineSet", "MachinePool"}, ofMachines},
}

// Template returns the nodeTemplate for nodes like the given objects. It has the smallest amount of
// each resource, the labels that all objects have in common, and the taints of any object.
// Therefore, no object offers less than the template.
func Template(objects []*unstructured.Unstructured) (*tidekeeperv1.NodeTemplate, error) {
	if len(objects) == 0 {
		return nil, errors.New("there is no object: write a Node, a MachineDeployment of Cluster API, or a NodePool and NodeClaims of Karpenter")
	}
	var all *node
	for _, o := range objects {
		n, err := read(o)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if all == nil {
			all = &n
		} else {
			all.meet(n)
		}
	}
	if err := complete(all.allocatable); err != nil {
		return nil, err
	}
	return all.template(), nil
}

func read(o *unstructured.Unstructured) (node, error) {
	kind := o.GroupVersionKind()
	for _, s := range sources {
		if s.group == kind.Group && slices.Contains(s.kinds, kind.Kind) {
			return s.read(o)
		}
	}
	return node{}, fmt.Errorf("%s does not describe nodes: write a Node, a MachineDeployment of Cluster API, or a NodePool and NodeClaims of Karpenter", o.GetAPIVersion())
}

// decode converts an unstructured object to the typed struct `into`.
func decode(o *unstructured.Unstructured, into any) error {
	text, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// ofNode reads the sample of an existing node, without the labels and taints that NodePools have
// applied to the node.
func ofNode(o *unstructured.Unstructured) (node, error) {
	n := &corev1.Node{}
	if err := decode(o, n); err != nil {
		return node{}, err
	}
	// If the ownership annotation cannot be parsed, the node counts as having no settings of pools.
	record, _ := ownership.Parse(n.Annotations[tidekeeperv1.OwnershipAnnotation])
	owned := func(key setting.Key) bool {
		for _, settings := range record {
			if _, is := settings[key]; is {
				return true
			}
		}
		return false
	}
	labels := map[string]string{}
	for key, value := range n.Labels {
		if !owned(setting.LabelKey(key)) {
			labels[key] = value
		}
	}
	taints := []corev1.Taint{}
	for _, taint := range n.Spec.Taints {
		if !owned(setting.TaintKey(taint.Key, taint.Effect)) {
			taints = append(taints, taint)
		}
	}
	return node{n.Status.Allocatable, labels, taints}, nil
}

// meet merges another sample into n. If both have resource amounts, n keeps the smaller amounts and
// the common labels. A sample without amounts is that of a Karpenter NodePool, whose labels are on
// each of its nodes. These labels are added to the labels of the other sample.
func (n *node) meet(other node) {
	concrete := n.allocatable != nil && other.allocatable != nil
	if n.allocatable == nil {
		n.allocatable = other.allocatable
	} else if concrete {
		for name, amount := range n.allocatable {
			if theirs := other.allocatable[name]; theirs.Cmp(amount) < 0 {
				n.allocatable[name] = theirs
			}
		}
	}
	if concrete {
		maps.DeleteFunc(n.labels, func(key, value string) bool {
			theirs, has := other.labels[key]
			return !has || theirs != value
		})
	} else {
		maps.Copy(n.labels, other.labels)
	}
	// The taints of all samples are taken, because a taint of any sample keeps pods away from some
	// new nodes.
	for _, taint := range other.taints {
		if !slices.ContainsFunc(n.taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			n.taints = append(n.taints, taint)
		}
	}
}

// complete returns an error if the amount of cpu, memory or pods is missing. Every nodeTemplate
// needs all three.
func complete(amounts corev1.ResourceList) error {
	var missing []string
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if amount := amounts[name]; amount.Sign() <= 0 {
			missing = append(missing, string(name))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("no object says how much %s a node has: add a Node, or for Karpenter a NodeClaim of the NodePool, which has the amounts in status.allocatable", strings.Join(missing, ", "))
	}
	return nil
}

// passing lists the key prefixes of taints that a template must not have, because other clients
// remove them again or because they concern a single node.
var passing = []string{"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "node.cluster.x-k8s.io/uninitialized", "karpenter.sh/", "ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler"}

// perNode lists the labels whose values differ from node to node.
var perNode = []string{corev1.LabelHostname, tidekeeperv1.DrainedLabel, "karpenter.sh/registered", "karpenter.sh/initialized", "topology.k8s.aws/zone-id"}

func (n *node) template() *tidekeeperv1.NodeTemplate {
	t := &tidekeeperv1.NodeTemplate{Allocatable: map[corev1.ResourceName]resource.Quantity{}}
	for name, amount := range n.allocatable {
		if amount.Sign() > 0 {
			t.Allocatable[name] = amount
		}
	}
	for key, value := range n.labels {
		if !slices.Contains(perNode, key) {
			if t.Labels == nil {
				t.Labels = map[string]tidekeeperv1.LabelValue{}
			}
			t.Labels[key] = tidekeeperv1.LabelValue(value)
		}
	}
	for _, taint := range n.taints {
		if !slices.ContainsFunc(passing, func(prefix string) bool { return strings.HasPrefix(taint.Key, prefix) }) {
			t.Taints = append(t.Taints, tidekeeperv1.Taint{Key: taint.Key, Value: tidekeeperv1.LabelValue(taint.Value), Effect: taint.Effect})
		}
	}
	return t
}
