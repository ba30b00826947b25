// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

// TestKeptPodFields checks that a cache that decodes only keptPodFields stores the same pods as the
// transform of completely decoded pods, and that no field can be removed from keptPodFields. With
// --verify-decoding, a missing field must be detected, and the cache must still be complete.
func TestKeptPodFields(t *testing.T) {
	s := storedPods(t)
	withFacts := keptPodFields()
	withFacts.Facts, withFacts.Ready = drain.NewHasher(maphash.MakeSeed()), podtimeline.IsReady
	s.expectDecoded(t, podcache.Content{Pods: keptPodFields()})
	s.expectDecoded(t, podcache.Content{Pods: withFacts})
	for i, field := range keptPodFields().Fields {
		t.Run("without "+field, func(t *testing.T) {
			t.Parallel()
			without := keptPodFields()
			without.Fields = slices.Delete(without.Fields, i, i+1)
			s.expectNoticed(t, podcache.Content{Pods: without})
		})
	}
}

// storedPods returns random pods in the API server's wire format, and the objects that the cache
// should store for them.
func storedPods(t *testing.T) *stored {
	t.Helper()
	pods := manyPods(600)
	want := make([]client.Object, len(pods))
	sent := make([][]byte, len(pods))
	for i, pod := range pods {
		sent[i] = encoded(t, pod)
		decoded := &corev1.Pod{}
		if err := decoded.Unmarshal(sent[i]); err != nil {
			t.Fatal(err)
		}
		want[i] = transformed(t, decoded)
	}
	return &stored{kind: "Pod", object: &corev1.Pod{}, transform: transformPod, sent: sent, want: want}
}

// TestNodeFields checks nodeFields in the same way as TestKeptPodFields checks keptPodFields.
func TestNodeFields(t *testing.T) {
	s := storedNodes(t)
	s.expectDecoded(t, podcache.Content{Nodes: nodeFields})
	for i, field := range nodeFields {
		t.Run("without "+field, func(t *testing.T) {
			s.expectNoticed(t, podcache.Content{Nodes: slices.Delete(slices.Clone(nodeFields), i, i+1)})
		})
	}
}

// storedNodes returns random nodes in the API server's wire format, and the objects that the cache
// should store for them.
func storedNodes(t *testing.T) *stored {
	t.Helper()
	fill := filler(2)
	s := &stored{kind: "Node", object: &corev1.Node{}, transform: transformNode}
	for i := range 50 {
		node, decoded := &corev1.Node{}, &corev1.Node{}
		fill.Fill(node)
		node.Name = fmt.Sprint("node-", i)
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"})
		s.sent = append(s.sent, encoded(t, node))
		if err := decoded.Unmarshal(s.sent[i]); err != nil {
			t.Fatal(err)
		}
		slim, err := transformNode(decoded)
		if err != nil {
			t.Fatal(err)
		}
		s.want = append(s.want, slim.(client.Object))
	}
	return s
}

func encoded(t *testing.T, object interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := object.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// noTypedList returns a lister for client-go that always fails, because no fallback to client-go is
// expected.
func noTypedList() toolscache.ListerWatcher {
	return &toolscache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
		return nil, errors.New("client-go is asked")
	}}
}

// manyPods returns random pods, typical pods, and typical pods with up to two oddities. Each pod
// occurs twice, with a different name, node and times: the second occurrence resembles a pod that
// was decoded before.
func manyPods(count int) []*corev1.Pod {
	random := rand.New(rand.NewSource(1))
	fill := filler(2)
	var list []*corev1.Pod
	for i := range count {
		pod := population{count, true}.pod(i)
		switch i % 3 {
		case 0:
			pod = &corev1.Pod{}
			fill.Fill(pod)
			pod.Labels = map[string]string{"pod-template-hash": pick(random, "x", "y"), "rollouts-pod-template-hash": "z", "app": "a"}
			pod.Annotations = map[string]string{tidekeeperv1.RestartedAtAnnotation: pick(random, "03:00", "04:00"), "a": "b"}
		case 1:
			a, b := random.Intn(len(oddities)), random.Intn(len(oddities))
			oddities[min(a, b)](pod, random)
			if a != b {
				oddities[max(a, b)](pod, random)
			}
		}
		for copies := range 2 {
			pod := pod.DeepCopy()
			pod.Name, pod.Namespace = fmt.Sprintf("pod-%d-%d", i, copies), pick(random, "shop", "web")
			pod.UID = types.UID(pod.Name)
			if copies == 1 {
				pod.Spec.NodeName, pod.CreationTimestamp = pick(random, "", "node"), anyTime(random)
				pod.ResourceVersion = strconv.Itoa(i)
			}
			list = append(list, pod)
		}
	}
	return list
}

// filler returns a filler of random objects. A field whose value the transform interprets gets a
// value that occurs in real objects.
func filler(seed int64) *randfill.Filler {
	return randfill.New().RandSource(rand.NewSource(seed)).NilChance(.3).NumElements(0, 3).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(pick(c.Rand, "0", "1", "250m", "64Mi", "1G"))
		},
		func(at *metav1.Time, c randfill.Continue) { *at = anyTime(c.Rand) },
		func(s *corev1.PodConditionType, c randfill.Continue) {
			*s = pick(c.Rand, corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady, corev1.PodReady, corev1.PodResizePending, podtimeline.SummaryCondition)
		},
		func(s *corev1.ConditionStatus, c randfill.Continue) {
			*s = pick(c.Rand, corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse)
		},
		func(p *corev1.PodCondition, c randfill.Continue) {
			c.FillNoCustom(p)
			p.Reason = pick(c.Rand, corev1.PodReasonInfeasible, "Deferred")
		},
		func(o *corev1.Container, c randfill.Continue) {
			c.FillNoCustom(o)
			o.Name = pick(c.Rand, "a", "b")
		},
		func(s *corev1.ContainerStatus, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Name, s.RestartCount = pick(c.Rand, "a", "b"), int32(c.Intn(3))
		},
		func(*metav1.FieldsV1, randfill.Continue) {},
	)
}

func pick[T any](random *rand.Rand, of ...T) T { return of[random.Intn(len(of))] }

func anyTime(random *rand.Rand) metav1.Time {
	if random.Intn(8) == 0 {
		return metav1.Time{}
	}
	return metav1.Unix(int64(1_700_000_000+random.Intn(100)), 0)
}

// near returns a time within ten seconds after the pod's creation, or sometimes the zero time.
func near(p *corev1.Pod, random *rand.Rand) metav1.Time {
	if random.Intn(8) == 0 {
		return metav1.Time{}
	}
	return metav1.NewTime(p.CreationTimestamp.Add(time.Duration(random.Intn(10)) * time.Second))
}

// oddities lists functions that make a typical pod unusual. The functions that remove fields are at
// the end of the list.
var oddities = []func(*corev1.Pod, *rand.Rand){
	func(p *corev1.Pod, r *rand.Rand) { at := near(p, r); p.DeletionTimestamp = &at },
	func(p *corev1.Pod, r *rand.Rand) { p.OwnerReferences[0].Kind = pick(r, "DaemonSet", "Job") },
	func(p *corev1.Pod, _ *rand.Rand) {
		p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{Kind: "ConfigMap", Name: "c", UID: "c"})
	},
	func(p *corev1.Pod, _ *rand.Rand) { p.OwnerReferences[0].Controller = new(false) },
	func(p *corev1.Pod, r *rand.Rand) {
		p.Status.Phase = pick(r, corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed)
	},
	func(p *corev1.Pod, _ *rand.Rand) { p.Status.StartTime = nil },
	func(p *corev1.Pod, _ *rand.Rand) {
		// Without a creation time, the start time counts as the creation time. This start time is
		// so long ago that the pod's other times are implausible.
		p.CreationTimestamp, p.Status.StartTime, p.Status.Conditions[4].Type = metav1.Time{}, new(metav1.Unix(-5_000_000_000, 0)), "Other"
	},
	func(p *corev1.Pod, r *rand.Rand) { p.Status.Conditions[r.Intn(5)].Status = corev1.ConditionFalse },
	func(p *corev1.Pod, r *rand.Rand) { p.Status.Conditions[r.Intn(5)].LastTransitionTime = near(p, r) },
	func(p *corev1.Pod, r *rand.Rand) {
		p.Status.Conditions = append(p.Status.Conditions, p.Status.Conditions[r.Intn(5)])
		p.Status.Conditions[5].LastTransitionTime = near(p, r)
	},
	func(p *corev1.Pod, r *rand.Rand) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: pick(r, corev1.PodReasonInfeasible, corev1.PodReasonDeferred)})
	},
	func(p *corev1.Pod, _ *rand.Rand) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: podtimeline.SummaryCondition, Status: corev1.ConditionTrue, Reason: "forged", Message: "1,2,3,4,5"})
	},
	func(p *corev1.Pod, r *rand.Rand) {
		p.Status.ContainerStatuses[r.Intn(2)].AllocatedResources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7")}
	},
	eachStatus(func(p *corev1.Pod, s *corev1.ContainerStatus, r *rand.Rand) {
		s.RestartCount, s.LastTerminationState.Terminated = 1, &corev1.ContainerStateTerminated{StartedAt: near(p, r), FinishedAt: near(p, r)}
	}),
	eachStatus(func(p *corev1.Pod, s *corev1.ContainerStatus, r *rand.Rand) {
		s.LastTerminationState.Running = &corev1.ContainerStateRunning{StartedAt: near(p, r)}
	}),
	eachStatus(func(p *corev1.Pod, s *corev1.ContainerStatus, r *rand.Rand) {
		s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: near(p, r)}}
	}),
	func(p *corev1.Pod, r *rand.Rand) { p.Status.ContainerStatuses[r.Intn(2)].RestartCount = 2 },
	func(p *corev1.Pod, r *rand.Rand) {
		p.Status.ContainerStatuses[r.Intn(2)].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	},
	func(p *corev1.Pod, _ *rand.Rand) { p.Spec.NodeSelector = map[string]string{"disk": "fast"} },
	func(p *corev1.Pod, _ *rand.Rand) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}
	},
	func(p *corev1.Pod, _ *rand.Rand) { p.Spec.Resources = &corev1.ResourceRequirements{} },
	func(p *corev1.Pod, r *rand.Rand) { hugeFields[r.Intn(len(hugeFields))].fill(p, 200) },
	func(p *corev1.Pod, _ *rand.Rand) { p.Annotations = nil },
	func(p *corev1.Pod, _ *rand.Rand) { p.Labels = nil },
	func(p *corev1.Pod, _ *rand.Rand) { p.OwnerReferences = nil },
	func(p *corev1.Pod, _ *rand.Rand) { p.Status.ContainerStatuses = p.Status.ContainerStatuses[:1] },
	func(p *corev1.Pod, _ *rand.Rand) { p.Status = corev1.PodStatus{} },
}

func eachStatus(change func(*corev1.Pod, *corev1.ContainerStatus, *rand.Rand)) func(*corev1.Pod, *rand.Rand) {
	return func(p *corev1.Pod, random *rand.Rand) {
		for i := range p.Status.ContainerStatuses {
			change(p, &p.Status.ContainerStatuses[i], random)
		}
	}
}
