// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestALateWriteIsTakenBack suspends a leader while its write to a node is in flight. The write
// arrives when the pool has been deleted or no longer has the key, and the new leader must remove
// the setting.
func TestALateWriteIsTakenBack(t *testing.T) {
	for name, meanwhile := range map[string]func(t *testing.T, pool string){
		"deleted": func(t *testing.T, name string) {
			p := framework.Pool(name)
			cluster.Delete(t, p)
			eventuallyGone(t, p)
		},
		"edited": func(t *testing.T, name string) {
			p := framework.Pool(name)
			cluster.Change(t, p, func() { p.Spec.Labels, p.Spec.Taints = nil, nil })
			healthyWith(t, name, 1)
			framework.Eventually(t, "its status has no managed keys", func() error {
				cluster.Refresh(t, p)
				return diff(0, len(p.Status.Managed.Labels)+len(p.Status.Managed.Taints))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			name := "late-" + name
			proxy := cluster.StartProxy(t, "")
			elect := cluster.ElectUntilReleased(t)
			leader := cluster.StartManager(t, append([]string{"--kubeconfig", proxy.Kubeconfig}, elect...)...)
			eventuallyLeader(t, "")
			node := addMembers(t, name, 1)[0]
			// The leader must know the node without its first taints, or the late patch would conflict.
			known := framework.Pool(name + "-known")
			known.Spec.Selector = &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{corev1.LabelHostname: tidekeeperv1.LabelValue(node)}}
			cluster.Apply(t, known)
			eventuallyPool(t, known.Name, "has a usable node", func(p *tidekeeperv1.NodePool) error { return diff(int32(1), p.Status.UsableNodes) })
			cluster.Delete(t, known)
			eventuallyGone(t, known)
			proxy.Add(t, fmt.Sprintf(`rules: [{name: late, match: {verbs: [patch], resources: [nodes], names: [%s]}, fault: {kind: Delay, for: 10m}}]`, node))
			cluster.StartManager(t, elect...)
			cluster.Apply(t, pool(name))
			proxy.AwaitFired(t, "late", 1)

			leader.Signal(t, syscall.SIGSTOP)
			t.Cleanup(func() { leader.Signal(t, syscall.SIGCONT); leader.Kill(t) })
			cluster.ExpireLease(t)
			meanwhile(t, name)
			mark := proxy.Mark(t)
			proxy.Remove(t, "late")
			framework.Eventually(t, "the late write has arrived", func() error {
				passed := proxy.PassedSince(t, mark)
				for _, p := range passed {
					if p.Verb == "patch" && p.Name == node && p.Status == 200 {
						return nil
					}
				}
				return fmt.Errorf("not yet: %+v", passed)
			})
			eventuallyShape(t, node, clean)
		})
	}
}
