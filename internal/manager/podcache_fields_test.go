// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/randfill"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/podcache"
	"tidekeeper.dev/tidekeeper/internal/podtimeline"
)

// Of whatever pod, the cache has what the transform leaves of it, although it decodes only what the
// transform reads; and it decodes nothing that makes no difference.
func TestPodContent(t *testing.T) {
	list := manyPods(600)
	want := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		want[i] = transformed(t, decodedAgain(t, &list.Items[i]))
	}
	if diff := differences(t, list, want, podContent()); diff != "" {
		t.Fatalf("what the cache has of a pod (-want +got):\n%s", diff)
	}
	for i, field := range podContent().Fields {
		t.Run("without "+field, func(t *testing.T) {
			t.Parallel()
			without := podContent()
			without.Fields = slices.Delete(slices.Clone(without.Fields), i, i+1)
			if differences(t, list, want, without) == "" {
				t.Error("the field makes no difference")
			}
		})
	}
}

// differences returns how the first pod differs that is not as it should be in a cache of that
// content, or "".
func differences(t *testing.T, list *corev1.PodList, pods []*corev1.Pod, content podcache.PodContent) string {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(serveList(t, list, scheme))
	defer server.Close()
	newInformer, err := podcache.New(
		podcache.Connection{Config: &rest.Config{Host: server.URL}, Client: server.Client(), Scheme: scheme},
		podcache.Content{Pods: content}, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	informer := newInformer(noTypedPods(), &corev1.Pod{}, 0, toolscache.Indexers{})
	if err := informer.SetTransform(transformPod); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { informer.RunWithContext(ctx); close(stopped) }()
	defer func() { cancel(); <-stopped }()
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the cache is not filled")
	}
	if got := len(informer.GetStore().ListKeys()); got != len(list.Items) && len(content.Fields) == len(podContent().Fields) {
		return fmt.Sprintf("%d pods of %d", got, len(list.Items))
	}
	for _, want := range pods {
		got, exists, err := informer.GetStore().GetByKey(want.Namespace + "/" + want.Name)
		if err != nil {
			t.Fatal(err)
		}
		if !exists {
			return "no " + want.Name
		}
		if !equality.Semantic.DeepEqual(want, got) {
			return cmp.Diff(want, got.(*corev1.Pod), cmpopts.EquateEmpty()) + "."
		}
	}
	return ""
}

// decodedAgain returns a pod as it is sent.
func decodedAgain(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	raw, err := pod.Marshal()
	out := &corev1.Pod{}
	if err := errors.Join(err, out.Unmarshal(raw)); err != nil {
		t.Fatal(err)
	}
	return out
}

// noTypedPods is a source that nothing may be read from.
func noTypedPods() toolscache.ListerWatcher {
	return &toolscache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
		return nil, errors.New("client-go is asked")
	}}
}

// serveList answers with pages of a list, and with watches in which nothing happens.
func serveList(t *testing.T, list *corev1.PodList, scheme *apiruntime.Scheme) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err != nil {
			t.Errorf("not asked for a page: %v", err)
		}
		page := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
		last := min(first+limit, len(list.Items))
		page.Items = list.Items[first:last]
		if last < len(list.Items) {
			page.Continue = strconv.Itoa(last)
		}
		if err := protobuf.NewSerializer(scheme, scheme).Encode(page, w); err != nil && r.Context().Err() == nil {
			t.Error(err)
		}
	}
}

// manyPods returns pods of any shape, typical ones, and ones with some oddities. Each is there
// twice but for its name, node and times, so that the second is like one that was decoded before.
func manyPods(count int) *corev1.PodList {
	random := rand.New(rand.NewSource(1))
	fill := randfill.New().RandSource(rand.NewSource(2)).NilChance(.3).NumElements(0, 3).MaxDepth(12).Funcs(
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
	list := &corev1.PodList{}
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
			list.Items = append(list.Items, *pod)
		}
	}
	return list
}

func pick[T any](random *rand.Rand, of ...T) T { return of[random.Intn(len(of))] }

func anyTime(random *rand.Rand) metav1.Time {
	if random.Intn(8) == 0 {
		return metav1.Time{}
	}
	return metav1.Unix(int64(1_700_000_000+random.Intn(100)), 0)
}

// near returns a time that may be one of the pod's start.
func near(p *corev1.Pod, random *rand.Rand) metav1.Time {
	if random.Intn(8) == 0 {
		return metav1.Time{}
	}
	return metav1.NewTime(p.CreationTimestamp.Add(time.Duration(random.Intn(10)) * time.Second))
}

// oddities make a typical pod less so. Those that take things away come last.
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
		// Without another time, this is when the pod was created, too long ago for the others.
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
