// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/cache/wire"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

// testContent returns the fields that the transform slim reads. The fields that the manager itself
// keeps are tested in its package.
func testContent() KeptPodFields {
	return KeptPodFields{
		Fields: []string{
			"metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion", "metadata.creationTimestamp",
			"metadata.deletionTimestamp", "metadata.labels[a]", "metadata.annotations[kubectl.kubernetes.io/restartedAt]", "metadata.ownerReferences",
			"spec.nodeName", "spec.priority", "spec.containers.name", "spec.containers.resources.requests",
			"status.phase", "status.startTime", "status.conditions",
			"status.containerStatuses.name", "status.containerStatuses.restartCount", "status.containerStatuses.state.running", "status.containerStatuses.resources.requests",
		},
		Summary: podtimeline.Summarize,
	}
}

// slim is a pod transform that keeps the fields listed in testContent.
func slim(object any) (any, error) {
	pod := object.(*corev1.Pod)
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp, OwnerReferences: pod.OwnerReferences,
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName, Priority: pod.Spec.Priority},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if value, ok := pod.Labels["a"]; ok {
		kept.Labels = map[string]string{"a": value}
	}
	for _, c := range pod.Spec.Containers {
		kept.Spec.Containers = append(kept.Spec.Containers, corev1.Container{Name: c.Name, Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests}})
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.Resources != nil {
			kept.Status.ContainerStatuses = append(kept.Status.ContainerStatuses, corev1.ContainerStatus{Name: s.Name, Resources: &corev1.ResourceRequirements{Requests: s.Resources.Requests}})
		}
	}
	if summary := podtimeline.Summarize(pod); summary != nil {
		kept.Status.Conditions = []corev1.PodCondition{*summary}
	}
	return kept, nil
}

// newTestDecoder returns a decoder of pods transformed by slim. It also returns a counter of the
// pods that were decoded completely.
func newTestDecoder(t testing.TB) (d *podDecoder, count *int) {
	t.Helper()
	w, err := newRecordMaker(&encoder{}, testContent())
	if err != nil {
		t.Fatal(err)
	}
	count = new(int)
	w.toRecord = func(object kruntime.Object) (kruntime.Object, error) {
		*count++
		pod, err := slim(object)
		if err != nil {
			return nil, err
		}
		return w.record(pod.(*corev1.Pod))
	}
	return newPodDecoder(w), count
}

func marshal(t testing.TB, object interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := object.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// typicalPod returns the i-th pod of a workload. It has all fields that an API server sends, about
// 6 KiB.
func typicalPod(i int) *corev1.Pod {
	pod := workloadPod(i)
	pod.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-06-10T03:00:00Z"}
	pod.Labels = map[string]string{"a": "b", "app.kubernetes.io/name": "service"}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(`{"f:status":{` + strings.Repeat(`"f:conditions":{},`, 100) + `}}`)}}
	start := metav1.Unix(pod.CreationTimestamp.Unix()+2, 0)
	pod.Status.StartTime = &start
	pod.Status.Conditions = nil
	for _, kind := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: start})
	}
	for c := range pod.Spec.Containers {
		container := &pod.Spec.Containers[c]
		for n := range 20 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("SERVICE_SETTING_%d", n), Value: fmt.Sprintf("https://backend-%d.example.com:8443/api", n)})
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: "registry.example.com/service:v1", Resources: &container.Resources, AllocatedResources: container.Resources.Requests,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: start}},
		})
	}
	return pod
}

// TestRecordOfBytes checks that the record built from a pod's bytes equals the record built from
// the decoded pod. The next pod with the same shared part must not be decoded.
func TestRecordOfBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, decoded := newTestDecoder(&testing.T{})
		var alive []*record
		for range rapid.IntRange(1, 5).Draw(t, "pods") {
			pod := anyPod(t)
			if rapid.Bool().Draw(t, "is typical") {
				pod = typicalPod(rapid.IntRange(0, 40).Draw(t, "i"))
			}
			raw, err := pod.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			again := &corev1.Pod{}
			if err := again.Unmarshal(raw); err != nil {
				t.Fatal(err)
			}
			want, err := slim(again)
			if err != nil {
				t.Fatal(err)
			}
			before := *decoded
			for i := range 2 {
				r, err := d.record(bytes.Clone(raw))
				if err != nil {
					t.Fatal(err)
				}
				alive = append(alive, r)
				if diff := cmp.Diff(want, any(r.pod()), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("the pod that was read %d times before (-want +got):\n%s", i, diff)
				}
			}
			twice := map[corev1.PodConditionType]bool{}
			usual := true
			for _, c := range pod.Status.Conditions {
				usual = usual && !twice[c.Type]
				twice[c.Type] = true
			}
			if usual && *decoded > before+1 {
				t.Fatalf("the pod was decoded %d times", *decoded-before)
			}
		}
		runtime.KeepAlive(alive)
	})
}

// TestAllocationsOfAUsualPod checks that building the record of a usual pod takes few allocations,
// because dropped fields are not decoded.
func TestAllocationsOfAUsualPod(t *testing.T) {
	d, decoded := newTestDecoder(t)
	raw := marshal(t, typicalPod(1))
	first, err := d.record(bytes.Clone(raw))
	if err != nil {
		t.Fatal(err)
	}
	used := make([]byte, len(raw))
	got := testing.AllocsPerRun(100, func() {
		copy(used, raw)
		if _, err := d.record(used); err != nil {
			t.Error(err)
		}
	})
	runtime.KeepAlive(first)
	t.Logf("a pod of %d bytes takes %.0f allocations", len(raw), got)
	if got > 12 {
		t.Errorf("a usual pod takes %.0f allocations, want at most 12", got)
	}
	if *decoded != 1 {
		t.Errorf("%d pods were decoded, want the first", *decoded)
	}
}

// podPage returns a page of a pod list in the API server's wire format.
func podPage(t testing.TB, about metav1.ListMeta, pods ...*corev1.Pod) []byte {
	t.Helper()
	list := &corev1.PodList{ListMeta: about}
	for _, pod := range pods {
		list.Items = append(list.Items, *pod)
	}
	return inEnvelope("PodList", marshal(t, list))
}

// inEnvelope wraps a marshaled object in an Unknown message with a prefix, the API server's wire
// format.
func inEnvelope(kind string, raw []byte) []byte {
	unknown := kruntime.Unknown{TypeMeta: kruntime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}
	message, err := unknown.Marshal()
	if err != nil {
		panic(err)
	}
	return append(bytes.Clone(wire.Prefix), message...)
}

// typicalPage returns a page of 500 typical pods in the API server's wire format.
func typicalPage(t testing.TB) []byte {
	var pods []*corev1.Pod
	for i := range pageSize {
		pods = append(pods, typicalPod(i))
	}
	return podPage(t, metav1.ListMeta{ResourceVersion: "7"}, pods...)
}

// recordsOf decodes a page of pods into records.
func recordsOf(t testing.TB, d *podDecoder, page []byte) []*record {
	var records []*record
	err := wire.ReadPage(bytes.NewReader(page), "PodList", func(*metav1.ListMeta) {}, func(raw []byte) error {
		r, err := d.record(raw)
		records = append(records, r)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// typedList decodes a page of pods into Go types, as client-go does.
func typedList(t testing.TB, page []byte) {
	list, err := kruntime.Decode(scheme.Codecs.UniversalDeserializer(), page)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(list.(*corev1.PodList).Items); got != pageSize {
		t.Fatalf("%d pods, want %d", got, pageSize)
	}
}

// TestMemoryOfAPage checks that the records of a page take at most a tenth of the memory of its
// pods decoded into Go types.
func TestMemoryOfAPage(t *testing.T) {
	page := typicalPage(t)
	allocated := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	d, _ := newTestDecoder(t)
	var records []*record
	typed := allocated(func() { typedList(t, page) })
	ours := allocated(func() { records = recordsOf(t, d, page) })
	t.Logf("a page of %d bytes takes %d bytes as Go types, and %d as records: %.1f %%", len(page), typed, ours, 100*float64(ours)/float64(typed))
	if len(records) != pageSize {
		t.Errorf("%d records, want %d", len(records), pageSize)
	}
	if ours*10 > typed {
		t.Errorf("records take %d bytes where Go types take %d, want at most a tenth", ours, typed)
	}
}

func BenchmarkPage(b *testing.B) {
	page := typicalPage(b)
	b.Run("typed", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(page)))
		for b.Loop() {
			typedList(b, page)
		}
	})
	b.Run("records", func(b *testing.B) {
		d, _ := newTestDecoder(b)
		alive := recordsOf(b, d, page)
		b.ReportAllocs()
		b.SetBytes(int64(len(page)))
		for b.Loop() {
			recordsOf(b, d, page)
		}
		runtime.KeepAlive(alive)
	})
}

// TestUnknownFields checks that fields from a later API version are skipped, regardless of their
// wire type.
func TestUnknownFields(t *testing.T) {
	d, _ := newTestDecoder(t)
	pod := typicalPod(1)
	raw := marshal(t, pod)
	raw = protowire.AppendTag(raw, 900, protowire.VarintType)
	raw = protowire.AppendVarint(raw, 1<<40)
	raw = protowire.AppendTag(raw, 901, protowire.Fixed64Type)
	raw = protowire.AppendFixed64(raw, 1)
	raw = protowire.AppendTag(raw, 902, protowire.StartGroupType)
	raw = protowire.AppendTag(raw, 1, protowire.Fixed32Type)
	raw = protowire.AppendFixed32(raw, 1)
	raw = protowire.AppendTag(raw, 902, protowire.EndGroupType)
	r, err := d.record(raw)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.pod(); got.Name != pod.Name || got.Spec.NodeName != pod.Spec.NodeName {
		t.Errorf("read %s on %s", got.Name, got.Spec.NodeName)
	}
}
