// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package responder

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// eviction is an Eviction of a pod, steered as evictionrequest-controller would.
type eviction struct {
	*lifecyclev1alpha1.Eviction
	pod *corev1.Pod
}

// create creates an Eviction of a pod. No responder is active yet.
func create(t *testing.T, pod *corev1.Pod) *eviction {
	t.Helper()
	e := &eviction{&lifecyclev1alpha1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		Spec:       lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: pod.Name, UID: pod.UID}}},
	}, pod}
	cluster.Apply(t, e.Eviction)
	return e
}

// evict creates an Eviction of a pod, and activates its first responder.
func evict(t *testing.T, pod *corev1.Pod) *eviction {
	t.Helper()
	e := create(t, pod)
	e.begin(t)
	return e
}

// steer changes the status of the Eviction. A concurrent write of the manager is not lost.
func (e *eviction) steer(t *testing.T, change func(*lifecyclev1alpha1.EvictionStatus)) {
	t.Helper()
	framework.Eventually(t, "the status of Eviction "+e.Name+" is written", func() error {
		cluster.Refresh(t, e.Eviction)
		change(&e.Status)
		err := cluster.Status().Update(t.Context(), e.Eviction)
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		return err
	})
}

// begin copies the responders of the pod into the status, adds the default responder, and activates the
// first of them.
func (e *eviction) begin(t *testing.T) {
	t.Helper()
	responders := append(slices.Clone(e.pod.Spec.EvictionResponders),
		corev1.EvictionResponder{Name: lifecyclev1alpha1.EvictionResponderImperativeEviction, Priority: new(int32(100))})
	slices.SortFunc(responders, func(a, b corev1.EvictionResponder) int { return cmp.Compare(*b.Priority, *a.Priority) })
	e.steer(t, func(s *lifecyclev1alpha1.EvictionStatus) {
		s.ObservedGeneration = new(e.Generation)
		s.TargetResponders, s.Responders = nil, nil
		for _, r := range responders {
			s.TargetResponders = append(s.TargetResponders, lifecyclev1alpha1.TargetResponder{Name: r.Name, Priority: r.Priority, State: lifecyclev1alpha1.ResponderStateInactive})
			s.Responders = append(s.Responders, lifecyclev1alpha1.ResponderStatus{Name: r.Name})
		}
		activate(s, 0)
	})
}

// activate makes a responder the active one.
func activate(s *lifecyclev1alpha1.EvictionStatus, i int) {
	s.TargetResponders[i].State = lifecyclev1alpha1.ResponderStateActive
	s.Responders[i].StartTime = new(metav1.Now())
}

// report completes the part of another responder.
func (e *eviction) report(t *testing.T, responder string) {
	t.Helper()
	e.steer(t, func(s *lifecyclev1alpha1.EvictionStatus) {
		for i := range s.Responders {
			if s.Responders[i].Name == responder {
				s.Responders[i].CompletionTime = new(metav1.Now())
			}
		}
	})
}

// handOver completes the active responder and activates the next one. The default responder evicts the
// pod at once.
func (e *eviction) handOver(t *testing.T) {
	t.Helper()
	e.steer(t, func(s *lifecyclev1alpha1.EvictionStatus) {
		i := slices.IndexFunc(s.TargetResponders, func(r lifecyclev1alpha1.TargetResponder) bool {
			return r.State == lifecyclev1alpha1.ResponderStateActive
		})
		s.TargetResponders[i].State = lifecyclev1alpha1.ResponderStateCompleted
		activate(s, i+1)
	})
	if last := e.Status.TargetResponders[len(e.Status.TargetResponders)-1]; last.State == lifecyclev1alpha1.ResponderStateActive {
		if err := cluster.SubResource("eviction").Create(t.Context(), e.pod, &policyv1.Eviction{}); err != nil {
			t.Fatal(err)
		}
	}
}

// end gives the active responder a final state, and the Eviction a final condition.
func (e *eviction) end(t *testing.T, state lifecyclev1alpha1.ResponderStateType, condition lifecyclev1alpha1.EvictionConditionType, reason lifecyclev1alpha1.EvictionConditionReason) {
	t.Helper()
	e.steer(t, func(s *lifecyclev1alpha1.EvictionStatus) {
		for i := range s.TargetResponders {
			if s.TargetResponders[i].State == lifecyclev1alpha1.ResponderStateActive {
				s.TargetResponders[i].State = state
			}
		}
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: string(condition), Status: metav1.ConditionTrue, Reason: string(reason)})
	})
}

// finish ends the eviction after its pod is gone.
func (e *eviction) finish(t *testing.T) {
	t.Helper()
	if err := e.podIsGone(t); err != nil {
		t.Fatal(err)
	}
	e.end(t, lifecyclev1alpha1.ResponderStateCompleted, lifecyclev1alpha1.EvictionConditionTargetEvicted, lifecyclev1alpha1.EvictionConditionReasonPodDeleted)
}

// cancel ends the eviction as if all requesters had withdrawn it.
func (e *eviction) cancel(t *testing.T) {
	t.Helper()
	e.end(t, lifecyclev1alpha1.ResponderStateCanceled, lifecyclev1alpha1.EvictionConditionFailed, lifecyclev1alpha1.EvictionConditionReasonCanceledDueToNoRequesters)
}

// entry returns the manager's entry in the status.
func (e *eviction) entry(t *testing.T) *lifecyclev1alpha1.ResponderStatus {
	t.Helper()
	cluster.Refresh(t, e.Eviction)
	for i := range e.Status.Responders {
		if e.Status.Responders[i].Name == tidekeeperv1.EvictionResponder {
			return &e.Status.Responders[i]
		}
	}
	t.Fatalf("Eviction %s has no entry of the manager", e.Name)
	return nil
}

// says waits until the manager's message contains a text.
func (e *eviction) says(t *testing.T, text string) {
	t.Helper()
	framework.Eventually(t, "the response to Eviction "+e.Name+" says "+text, func() error {
		if entry := e.entry(t); entry.Message == nil || !strings.Contains(*entry.Message, text) {
			return fmt.Errorf("%+v", entry)
		}
		return nil
	})
}

// completed waits until the manager has completed its part with a message that contains a text.
func (e *eviction) completed(t *testing.T, text string) {
	t.Helper()
	framework.EventuallyWithin(t, 2*framework.Patience, "the response to Eviction "+e.Name+" is completed", func() error {
		if entry := e.entry(t); entry.CompletionTime == nil {
			return fmt.Errorf("%+v", entry)
		}
		return nil
	})
	entry := e.entry(t)
	if !strings.Contains(*entry.Message, text) {
		t.Errorf("Eviction %s was completed with %q, want %q", e.Name, *entry.Message, text)
	}
	if took := entry.CompletionTime.Sub(entry.StartTime.Time); took < 0 || took > 2*framework.Patience+time.Minute {
		t.Errorf("the response to Eviction %s took %s", e.Name, took)
	}
}

// podIsGone returns nil if the pod no longer exists.
func (e *eviction) podIsGone(t *testing.T) error {
	t.Helper()
	pod := &corev1.Pod{}
	err := cluster.Get(t.Context(), client.ObjectKeyFromObject(e.pod), pod)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && pod.UID == e.pod.UID {
		return errors.New("the pod is still there")
	}
	return nil
}
