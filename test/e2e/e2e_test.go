// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests each feature on a real control plane, with the manager as a separate process.
// test/features.md lists the features with their tests.
package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

var cluster framework.Cluster

func TestMain(m *testing.M) {
	framework.UseRaceBuilds()
	framework.VerifyDecoding()
	suite := framework.Suite{Shards: 3, Inside: askedInside}
	os.Exit(suite.Main(m, &cluster, "--nodes=0", "--audit"))
}

// pool returns a pool with one label and one taint named after it.
func pool(name string) *tidekeeperv1.NodePool {
	p := framework.Pool(name)
	p.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/" + name: "10"}
	p.Spec.Taints = []tidekeeperv1.Taint{{Key: "example.com/" + name, Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
	return p
}

// addMembers adds ready nodes named <pool>-1, <pool>-2... with the pool's role label, and returns
// their names.
func addMembers(t *testing.T, pool string, count int, args ...string) []string {
	t.Helper()
	cluster.AddNodes(t, pool, count, append([]string{"--pool", pool}, args...)...)
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", pool, i+1)
	}
	return names
}

// shape holds the labels, annotations and taints of a node that a pool can set, and the keys in the
// node's ownership annotation.
type shape struct {
	Labels, Annotations map[string]string
	Taints              []string
	Recorded            []string
}

// shapeOf returns the shape of a node, without labels, annotations and taints that the sandbox and
// the control plane set.
func shapeOf(t *testing.T, name string) shape {
	t.Helper()
	node := framework.Node(name)
	cluster.Refresh(t, node)
	return shapeOfNode(node)
}

func shapeOfNode(node *corev1.Node) shape {
	s := shape{Labels: map[string]string{}, Annotations: map[string]string{}}
	ours := func(key string) bool { return len(key) > 12 && key[:12] == "example.com/" }
	for k, v := range node.Labels {
		if ours(k) {
			s.Labels[k] = v
		}
	}
	for k, v := range node.Annotations {
		if ours(k) {
			s.Annotations[k] = v
		}
	}
	for _, taint := range node.Spec.Taints {
		if ours(taint.Key) {
			s.Taints = append(s.Taints, fmt.Sprintf("%s=%s:%s", taint.Key, taint.Value, taint.Effect))
		}
	}
	record := map[string]any{}
	if text, ok := node.Annotations[tidekeeperv1.OwnershipAnnotation]; ok && json.Unmarshal([]byte(text), &record) == nil {
		s.Recorded = slices.Sorted(maps.Keys(record))
	}
	return s
}

// shapeFrom returns the expected shape of a member of a pool that the function pool created.
func shapeFrom(pool string) shape {
	return shape{
		Labels:   map[string]string{"example.com/" + pool: "10"},
		Taints:   []string{"example.com/" + pool + "=yes:NoSchedule"},
		Recorded: []string{pool},
	}
}

// clean is the shape of a node without settings from any pool.
var clean = shape{}

// eventuallyShape waits until a node's shape equals `want`.
func eventuallyShape(t *testing.T, node string, want shape) {
	t.Helper()
	framework.Eventually(t, "node "+node+" has its shape", func() error {
		return diff(want, shapeOf(t, node))
	})
}

// diff returns nil if `got` equals `want`, or an error with the difference.
func diff(want, got any) error {
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		return fmt.Errorf("(-want +got):\n%s", d)
	}
	return nil
}

// eventuallyPool waits until the given check accepts the pool, and returns the pool.
func eventuallyPool(t *testing.T, name, what string, check func(*tidekeeperv1.NodePool) error) *tidekeeperv1.NodePool {
	t.Helper()
	pool := framework.Pool(name)
	framework.Eventually(t, "pool "+name+": "+what, func() error {
		cluster.Refresh(t, pool)
		return check(pool)
	})
	return pool
}

// eventuallyReason waits until a pool's condition Ready has the given reason for the current spec,
// and returns the pool.
func eventuallyReason(t *testing.T, name, reason string) *tidekeeperv1.NodePool {
	t.Helper()
	return eventuallyPool(t, name, "is "+reason, func(p *tidekeeperv1.NodePool) error { return is(p, reason) })
}

// is returns nil if the pool's condition Ready has the given reason for the current spec.
func is(pool *tidekeeperv1.NodePool, reason string) error {
	return framework.ReadyIs(pool.Status.Conditions, pool.Generation, reason)
}

// healthyWith waits until a pool is healthy with the given number of nodes, and returns the pool.
func healthyWith(t *testing.T, name string, nodes int32) *tidekeeperv1.NodePool {
	t.Helper()
	return eventuallyPool(t, name, fmt.Sprintf("is healthy with %d nodes", nodes), func(p *tidekeeperv1.NodePool) error {
		return errors.Join(is(p, "Healthy"), diff(nodes, p.Status.NodeCount))
	})
}

// eventuallyGone waits until an object no longer exists. The garbage collector discovers new kinds
// only every 30 seconds, and may collect nothing until then.
func eventuallyGone(t *testing.T, o client.Object) {
	t.Helper()
	framework.EventuallyWithin(t, 3*framework.Patience, fmt.Sprintf("%T %s is gone", o, o.GetName()), func() error {
		err := cluster.Get(t.Context(), client.ObjectKeyFromObject(o), o)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			return fmt.Errorf("it still exists, with finalizers %v", o.GetFinalizers())
		}
		return nil
	})
}

// relabel sets labels on a node. The value "-" removes a label; an empty value is set like any
// other.
func relabel(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	node := framework.Node(name)
	cluster.Change(t, node, func() {
		if node.Labels == nil {
			node.Labels = map[string]string{}
		}
		for k, v := range labels {
			if v == "-" {
				delete(node.Labels, k)
			} else {
				node.Labels[k] = v
			}
		}
	})
}

func role(pool string) string { return tidekeeperv1.RoleLabelPrefix + pool }
