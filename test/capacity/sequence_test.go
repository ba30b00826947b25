// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestLossInSequence compares the losses of pools loss --then with the control plane, which loses the
// same nodes one after the other. All pods and all nodes are alike, so that the order in which pods are
// placed does not matter, and the numbers must be equal.
func TestLossInSequence(t *testing.T) {
	w := twoNodes(t, "sequence", 3)
	for i := 2; i < 4; i++ {
		w.addPlain(t, fmt.Sprint("sequence-", i), "")
	}
	w.awaitNodes(t)
	w.scale(t, 5)
	var losses []loss
	ask := func(code int, args ...string) {
		t.Helper()
		losses = nil
		answer(t, &losses, "", append([]string{"pools", "loss", "-n", "sequence"}, args...), code)
	}
	pods := w.podsOf(t)
	ask(2, "--node", "sequence-0", "--cordon", "sequence-1,sequence-2", "--cordon", "sequence-3")
	first := len(slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return p.Spec.NodeName != "sequence-0" }))
	if first == 0 || losses[0].homeless() != first {
		t.Errorf("while all other nodes are cordoned, %d of %d pods have no place: %+v", losses[0].homeless(), first, losses)
	}
	// A rollout of five pods starts two more, and three nodes have room for six.
	ask(2, "--node", "sequence-0", "--surge", "deployment/web")
	if len(losses) != 2 || losses[0].Lost != "rollout of deployment/web" || losses[0].Pods != 2 || losses[0].homeless() != 0 || losses[1].homeless() != 1 {
		t.Errorf("during a rollout: %+v, want a place for two more pods, and one pod without place after the loss", losses)
	}
	ask(2, "--node", "sequence-0", "--then", "sequence-1", "--then", "sequence-2")
	says := slices.Clone(losses)
	if len(says) != 3 || says[1].Lost != "then node sequence-1" {
		t.Fatalf("%+v", says)
	}
	homeless := 0
	for i, want := range []int{0, 1, 3} {
		name := fmt.Sprint("sequence-", i)
		w.lose(t, []string{name})
		pending := w.settle(t, []string{name}, len(pods))
		if homeless += says[i].homeless(); homeless != want || len(pending) != want {
			t.Errorf("after the loss of %s, pools loss leaves %d pods without place, the scheduler %d, want %d: %+v", name, homeless, len(pending), want, says)
		}
	}
}
