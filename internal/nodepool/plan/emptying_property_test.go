// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// emptiedWorld simulates the pods of a node that is being emptied, the API server that accepts or
// refuses their evictions, and a process that forgets what it has tried when it is killed.
type emptiedWorld struct {
	now      time.Time
	pods     []*corev1.Pod
	attempts plan.EvictionAttempts
	// refusing is the set of controllers whose pods the API server refuses to evict.
	refusing map[types.UID]bool
	// evicted counts the accepted evictions of each pod.
	evicted map[types.UID]int
	created int
}

var worldTolerations = []corev1.Toleration{
	tolerating(""), tolerating(corev1.TaintEffectNoSchedule), tolerating(corev1.TaintEffectNoExecute), tolerating(corev1.TaintEffectNoExecute, 0), tolerating("", 300),
	{Key: "other", Operator: corev1.TolerationOpExists},
}

func (w *emptiedWorld) add(t *rapid.T, created time.Time) {
	w.created++
	name := fmt.Sprintf("p%d", w.created)
	kind := rapid.SampledFrom([]string{"", "ReplicaSet ", "DaemonSet ", "Node "}).Draw(t, "kind")
	if kind != "" {
		kind += rapid.SampledFrom([]string{"x", "y"}).Draw(t, "owner")
	}
	pod := podOf(name, kind, rapid.SliceOfN(rapid.SampledFrom(worldTolerations), 0, 2).Draw(t, "tolerations")...)
	pod.CreationTimestamp = metav1.NewTime(created)
	pod.Namespace = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace")
	if rapid.IntRange(0, 9).Draw(t, "ended") == 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	w.pods = append(w.pods, pod)
}

// step makes a decision, checks it, and carries out at most the given number of evictions.
func (w *emptiedWorld) step(t *rapid.T, upTo int) plan.EmptyingPlan {
	in := closedNode(w.pods...)
	in.Attempts = &w.attempts
	got := plan.DecideEmptying(in, w.now)
	w.check(t, in, got)
	for i, pod := range got.Evict {
		if i == upTo {
			break
		}
		group := plan.EvictionGroup(pod)
		w.attempts.Tried[pod.UID] = w.now
		if w.refusing[group] {
			refused, again := w.attempts.Refused[group]
			if !again {
				refused.Since = w.now
			}
			refused.Reason, refused.At = "refused", w.now
			w.attempts.Refused[group] = refused
			continue
		}
		w.evicted[pod.UID]++
		w.attempts.Accepted[pod.UID] = w.now
		delete(w.attempts.Refused, group)
		pod.DeletionTimestamp = &metav1.Time{Time: w.now.Add(30 * time.Second)}
	}
	return got
}

// check checks that only pods that must leave now are evicted, and that the taint would not delete
// any pod that could still be evicted.
func (w *emptiedWorld) check(t *rapid.T, in plan.EmptyingInput, got plan.EmptyingPlan) {
	taint := []corev1.Taint{in.Taints[0].Taint}
	for _, pod := range got.Evict {
		after, affected := plan.EvictionDelay(pod, taint)
		switch owner := metav1.GetControllerOf(pod); {
		case !affected, owner != nil && owner.Kind == "Node", pod.DeletionTimestamp != nil, w.evicted[pod.UID] > 0:
			t.Fatalf("pod %s is evicted, which need not leave", pod.Name)
		case w.now.Before(closedAt.Add(after)):
			t.Fatalf("pod %s is evicted at %s, and tolerates the taint for %s", pod.Name, w.now, after)
		}
	}
	if !got.Emptied {
		return
	}
	for _, pod := range w.pods {
		_, affected := plan.EvictionDelay(pod, taint)
		owner := metav1.GetControllerOf(pod)
		ofDaemonSet := owner != nil && owner.Kind == "DaemonSet"
		returns := slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
			return t.Key == "gpu" && (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule)
		})
		switch {
		case !affected, owner != nil && owner.Kind == "Node":
		case pod.DeletionTimestamp != nil && (ofDaemonSet || returns):
		case ofDaemonSet && returns && pod.CreationTimestamp.After(closedAt):
		default:
			t.Fatalf("the taint is added while pod %s of %v is left, which tolerates %v", pod.Name, owner, pod.Spec.Tolerations)
		}
	}
	if w.now.Before(closedAt.Add(in.MinDuration)) {
		t.Fatalf("the taint is added %s after the node was closed", w.now.Sub(closedAt))
	}
}

// TestEmptyingIsSafeAndEnds simulates a random history: evictions are refused for a while, pods
// leave or arrive, time passes, and the process is killed in the middle of its evictions. Each
// decision must be safe. Once no eviction is refused any longer, the node must be emptied soon,
// unless a pod has arrived that must not be evicted.
func TestEmptyingIsSafeAndEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &emptiedWorld{now: closedAt, refusing: map[types.UID]bool{}, evicted: map[types.UID]int{}}
		forget := func() {
			w.attempts = plan.EvictionAttempts{Tried: map[types.UID]time.Time{}, Accepted: map[types.UID]time.Time{}, Refused: map[types.UID]plan.RefusedEviction{}}
		}
		forget()
		for range rapid.IntRange(0, 8).Draw(t, "pods") {
			w.add(t, closedAt.Add(-time.Hour))
		}
		leave := func() {
			w.pods = slices.DeleteFunc(w.pods, func(pod *corev1.Pod) bool {
				return pod.DeletionTimestamp != nil && w.now.After(pod.DeletionTimestamp.Time)
			})
		}
		t.Repeat(map[string]func(*rapid.T){
			"decide": func(t *rapid.T) { w.step(t, 100) },
			"killed": func(t *rapid.T) {
				w.step(t, rapid.IntRange(0, 2).Draw(t, "after evictions"))
				forget()
			},
			"refuse": func(t *rapid.T) {
				w.refusing[types.UID(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "of"))] = rapid.Bool().Draw(t, "refuses")
			},
			"time": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 120).Draw(t, "seconds")) * time.Second)
				leave()
			},
			"arrival": func(t *rapid.T) { w.add(t, w.now) },
		})
		clear(w.refusing)
		for range 1000 {
			got := w.step(t, 100)
			if got.Emptied {
				return
			}
			if got.Again < time.Second {
				t.Fatalf("again after %s: %+v", got.Again, got)
			}
			w.now = w.now.Add(got.Again)
			leave()
			if len(got.Evict) == 0 && got.Stays != "" && w.mustStay() {
				return
			}
		}
		t.Fatalf("the node is never emptied: %+v", w.step(t, 100))
	})
}

// mustStay reports whether a pod has arrived that tolerates NoSchedule but not NoExecute.
func (w *emptiedWorld) mustStay() bool {
	return slices.ContainsFunc(w.pods, func(pod *corev1.Pod) bool {
		_, affected := plan.EvictionDelay(pod, []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoExecute}})
		return affected && pod.CreationTimestamp.After(closedAt) && slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
			return t.Key == "gpu" && t.Effect != corev1.TaintEffectNoExecute
		})
	})
}

// TestEmptyingDoesNotDependOnTheOrder checks that the order of the pods in the cache does not
// affect decisions.
func TestEmptyingDoesNotDependOnTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &emptiedWorld{now: objects.PatchTime}
		for range rapid.IntRange(2, 10).Draw(t, "pods") {
			w.add(t, closedAt.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "minutes"))*time.Minute))
		}
		one := plan.DecideEmptying(closedNode(w.pods...), w.now)
		other := plan.DecideEmptying(closedNode(rapid.Permutation(w.pods).Draw(t, "order")...), w.now)
		if !slices.Equal(names(one.Evict), names(other.Evict)) || one.Emptied != other.Emptied || one.Left != other.Left || one.Again != other.Again {
			t.Fatalf("%+v and %+v", one, other)
		}
	})
}
