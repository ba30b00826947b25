// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package badspec

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/fault/badspec/mutate"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// poolLabel is the label by which a pool selects its node.
const poolLabel = "lane.example.com/name"

var pools = []map[string]any{
	{
		"selector":    map[string]any{"matchLabels": map[string]any{poolLabel: mutate.Placeholder}},
		"labels":      map[string]any{"example.com/" + mutate.Placeholder: "10"},
		"annotations": map[string]any{"example.com/" + mutate.Placeholder: "high water"},
		"taints":      []any{map[string]any{"key": "example.com/" + mutate.Placeholder, "value": "yes", "effect": "NoSchedule"}},
		"handler":     "runc",
		"headroom":    map[string]any{"nodes": 1, "zones": 1},
	},
	{
		"selector": map[string]any{"matchExpressions": []any{map[string]any{"key": poolLabel, "operator": "In", "values": []any{mutate.Placeholder}}}},
		"labels":   map[string]any{"example.com/" + mutate.Placeholder: "20", "example.com/" + mutate.Placeholder + "-2": "x"},
		"taints": []any{
			map[string]any{"key": "example.com/" + mutate.Placeholder, "value": "no", "effect": "PreferNoSchedule"},
			map[string]any{"key": "example.com/" + mutate.Placeholder, "value": "no", "effect": "NoSchedule"},
		},
	},
}

func TestNodePool(t *testing.T) {
	standing := framework.Pool("standing")
	create(t, standing, pools[0])
	kind{crd: "tidekeeper.dev_nodepools.yaml", examples: pools, standing: standing, play: playPool}.run(t)
}

// look is the state of a node.
type look struct {
	Labels, Annotations map[string]string
	Taints              []string
}

// lookOf returns the state of a node without what the kubelet and the control plane
// set.
func lookOf(node *corev1.Node) look {
	l := look{Labels: maps.Clone(node.Labels), Annotations: maps.Clone(node.Annotations)}
	maps.DeleteFunc(l.Labels, func(key, _ string) bool { return strings.HasPrefix(key, "beta.kubernetes.io/") })
	maps.DeleteFunc(l.Annotations, func(key, _ string) bool {
		return key == tidekeeperv1.OwnershipAnnotation || strings.Contains(key, "kubernetes.io/")
	})
	for _, t := range node.Spec.Taints {
		l.Taints = append(l.Taints, fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect))
	}
	return l
}

// playPool edits a pool with its own node, and heals it. Other pools may select the node
// as long as their specs are bad.
func playPool(t testing.TB, e edit) {
	node := framework.Node(e.name)
	node.Labels = map[string]string{poolLabel: e.name}
	cluster.Apply(t, node)
	clean := look{Labels: map[string]string{poolLabel: e.name}}
	eventually(t, node, "is ready", func() error {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("it is not")
	})
	looks := func(want look) {
		t.Helper()
		eventually(t, node, "has its shape", func() error {
			if diff := cmp.Diff(want, lookOf(node), cmpopts.EquateEmpty()); diff != "" {
				return fmt.Errorf("(-want +got):\n%s", diff)
			}
			return nil
		})
	}

	p := framework.Pool(e.name)
	create(t, p, pools[0])
	heals := func() {
		t.Helper()
		eventually(t, p, "is healthy", func() error {
			if p.Status.NodeCount != 1 {
				return fmt.Errorf("it has %d nodes", p.Status.NodeCount)
			}
			return framework.ReadyIs(p.Status.Conditions, p.Generation, "Healthy")
		})
		key := "example.com/" + e.name
		looks(look{
			Labels: map[string]string{poolLabel: e.name, key: "10"}, Annotations: map[string]string{key: "high water"},
			Taints: []string{key + "=yes:NoSchedule"},
		})
		class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: tidekeeperv1.RuntimeClassPrefix + e.name}}
		eventually(t, class, "is the pool's", func() error {
			if class.Handler != "runc" || !metav1.IsControlledBy(class, p) {
				return fmt.Errorf("its handler is %s, its owners are %v", class.Handler, class.OwnerReferences)
			}
			return nil
		})
	}

	if !e.underWay {
		heals()
	}
	change(t, p, e.Patch(e.name))
	if !e.underWay {
		eventually(t, p, "is looked at", func() error {
			if p.Status.ObservedGeneration != p.Generation {
				return errors.New("it is not")
			}
			return nil
		})
	}
	change(t, p, mutate.PatchTo(pools[0], e.name))
	heals()

	cluster.Delete(t, p)
	looks(clean)
	cluster.Delete(t, node)
}
