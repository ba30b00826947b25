// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestDropCountsWhatItDrops checks that the state after a drop is compared with the last dropped
// state, so that every transition is either reported or counted as dropped.
func TestDropCountsWhatItDrops(t *testing.T) {
	all := newBacklogs()
	add := func(s observation) { all.add("shop/web", s) }
	var reported []string
	report := func(t Transition) error {
		reported = append(reported, describeAll([]Transition{t})...)
		return nil
	}
	add(observation{pod: pod(), initial: true})
	if err := all.report("shop/web", report); err != nil {
		t.Fatal(err)
	}
	reported = nil
	add(observation{pod: pod(yes(corev1.PodScheduled, 1))})
	add(observation{pod: pod(yes(corev1.PodScheduled, 1), no(corev1.PodReady, 2, "R"))})
	if err := all.report("shop/web", func(Transition) error { return errors.New("no space left") }); err == nil {
		t.Fatal("it is reported")
	}
	if n := all.drop("shop/web"); n != 2 {
		t.Errorf("%d transitions were dropped, want 2", n)
	}
	add(observation{pod: pod(yes(corev1.PodScheduled, 1), yes(corev1.PodReady, 3))})
	if err := all.report("shop/web", report); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"3 Condition Ready False>True"}, reported); diff != "" {
		t.Errorf("after the drop (-want +got):\n%s", diff)
	}

	// A pod that was deleted before the drop must be forgotten.
	add(observation{pod: pod(yes(corev1.PodScheduled, 1), yes(corev1.PodReady, 3)), gone: true})
	if n := all.drop("shop/web"); n != 1 || len(all.byKey) != 0 {
		t.Errorf("%d transitions were dropped, want 1; %d backlogs are left, want none", n, len(all.byKey))
	}
}
