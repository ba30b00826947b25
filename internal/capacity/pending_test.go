// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPending(t *testing.T) {
	pods := []corev1.Pod{
		aPod("b-2", "ReplicaSet", "b", "", "cpu", "2"), aPod("a", "", "", "", "cpu", "1"), aPod("b-1", "ReplicaSet", "other", "", "cpu", "2000m"),
		aPod("c", "", "", "", "cpu", "1"), aPod("bound", "", "", "n", "cpu", "1"), aPod("ended", "", "", "", "cpu", "1"),
	}
	pods[3].Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	pods[5].Status.Phase = corev1.PodFailed
	var got [][]string
	for _, g := range newCluster([]corev1.Node{aNode("n", "cpu", "4")}, pods).Pending() {
		var names []string
		for _, p := range g.Pods {
			names = append(names, p.Name)
		}
		got = append(got, names)
	}
	equal(t, "groups", [][]string{{"b-1", "b-2"}, {"a"}, {"c"}}, got)
}
