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
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

// Of whatever pod, the cache has what the transform leaves of it, although it decodes only what the
// transform reads; and it decodes nothing that makes no difference. A field that is missing there is noticed
// by --verify-decoding, and then nothing is missing in the cache.
func TestKeptPodFields(t *testing.T) {
	s := storedPods(t)
	s.expectDecoded(t, podcache.Content{Pods: keptPodFields()}, false)
	for i, field := range keptPodFields().Fields {
		t.Run("without "+field, func(t *testing.T) {
			t.Parallel()
			without := keptPodFields()
			without.Fields = slices.Delete(without.Fields, i, i+1)
			s.expectDecoded(t, podcache.Content{Pods: without}, true)
		})
	}
}

// storedPods returns pods of any shape, and what the cache should have of them.
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

// So it is with nodes.
func TestNodeFields(t *testing.T) {
	s := storedNodes(t)
	s.expectDecoded(t, podcache.Content{Nodes: nodeFields}, false)
	for i, field := range nodeFields {
		t.Run("without "+field, func(t *testing.T) {
			s.expectDecoded(t, podcache.Content{Nodes: slices.Delete(slices.Clone(nodeFields), i, i+1)}, true)
		})
	}
}

// storedNodes returns nodes of any shape, and what the cache should have of them.
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

// stored is what a cache should have of the objects that it is sent.
type stored struct {
	kind      string
	object    client.Object
	transform toolscache.TransformFunc
	sent      [][]byte
	want      []client.Object
}

// expectDecoded expects a cache of that content to have the objects as they should be, at least while it
// verifies what it decodes, and expects that to find a difference if the content is wrong.
func (s *stored) expectDecoded(t *testing.T, content podcache.Content, wrong bool) {
	t.Helper()
	if !wrong {
		if diff := s.difference(t, content, prometheus.NewRegistry()); diff != "" {
			t.Fatalf("what the cache has (-want +got):\n%s", diff)
		}
	}
	content.Verify = clock.RealClock{}
	registry := prometheus.NewRegistry()
	if diff := s.difference(t, content, registry); diff != "" {
		t.Errorf("what the cache has when client-go decodes, too (-want +got):\n%s", diff)
	}
	if got := counted(t, registry, "tidekeeper_cache_decoding_verified_total"); got != len(s.sent) {
		t.Errorf("%d objects were verified, want %d", got, len(s.sent))
	}
	if got := counted(t, registry, "tidekeeper_cache_decoding_differences_total"); got > 0 != wrong {
		t.Errorf("%d objects differ from client-go's", got)
	}
}

// counted returns the sum of a counter.
func counted(t *testing.T, registry prometheus.Gatherer, name string) (sum int) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name {
				sum += int(metric.GetCounter().GetValue())
			}
		}
	}
	return sum
}

// difference returns how the first object differs that is not as it should be in a cache of that
// content, or "".
func (s *stored) difference(t *testing.T, content podcache.Content, registry prometheus.Registerer) string {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	newInformer, err := podcache.New(
		podcache.Connection{Config: &rest.Config{Host: server.URL}, Client: server.Client(), Scheme: scheme}, content, registry)
	if err != nil {
		t.Fatal(err)
	}
	informer := newInformer(noTypedList(), s.object, 0, toolscache.Indexers{})
	if err := informer.SetTransform(s.transform); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { informer.RunWithContext(ctx); close(stopped) }()
	defer func() { cancel(); <-stopped }()
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the cache is not filled")
	}
	for _, want := range s.want {
		got, exists, err := informer.GetStore().Get(want)
		if err != nil {
			t.Fatal(err)
		}
		if !exists {
			return "no " + want.GetName()
		}
		if !equality.Semantic.DeepEqual(want, got) {
			return cmp.Diff(want, got, cmpopts.EquateEmpty()) + "."
		}
	}
	return ""
}

// ServeHTTP answers with pages of a list, and with watches in which nothing happens.
func (s *stored) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		http.Error(w, "not asked for a page", http.StatusBadRequest)
		return
	}
	about := metav1.ListMeta{ResourceVersion: "7"}
	last := min(first+limit, len(s.sent))
	if last < len(s.sent) {
		about.Continue = strconv.Itoa(last)
	}
	meta, err := about.Marshal()
	list := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), meta)
	for _, raw := range s.sent[first:last] {
		list = protowire.AppendBytes(protowire.AppendTag(list, 2, protowire.BytesType), raw)
	}
	answer := apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: "v1", Kind: s.kind + "List"}, Raw: list}
	body, encodeErr := answer.Marshal()
	if err := errors.Join(err, encodeErr); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(append([]byte("k8s\x00"), body...))
}

func encoded(t *testing.T, object interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := object.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// noTypedList is a source that nothing may be read from.
func noTypedList() toolscache.ListerWatcher {
	return &toolscache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
		return nil, errors.New("client-go is asked")
	}}
}

// manyPods returns pods of any shape, typical ones, and ones with some oddities. Each is there
// twice but for its name, node and times, so that the second is like one that was decoded before.
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

// filler fills objects at random, with values that mean something where it matters.
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
