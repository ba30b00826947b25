// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/test/waitfor"
)

// anyPod draws a random pod whose fields are stored partly in the record and partly in its shared
// part.
func anyPod(t *rapid.T) *corev1.Pod {
	word := rapid.StringMatching(`[a-c]{0,2}`)
	flag := func(name string) *bool {
		return rapid.Ptr(rapid.Bool(), true).Draw(t, name)
	}
	at := func(name string) metav1.Time {
		if rapid.Bool().Draw(t, name+" is unknown") {
			return metav1.Time{}
		}
		return metav1.Unix(int64(rapid.IntRange(-1, 3).Draw(t, name)), 0)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: word.Draw(t, "name"), Namespace: word.Draw(t, "namespace"), UID: types.UID(word.Draw(t, "uid")),
			ResourceVersion: word.Draw(t, "version"), CreationTimestamp: at("created"),
			Labels: rapid.MapOfN(word, word, 1, 2).Draw(t, "labels"),
		},
		Spec:   corev1.PodSpec{NodeName: word.Draw(t, "node"), Priority: rapid.Ptr(rapid.Int32(), true).Draw(t, "priority")},
		Status: corev1.PodStatus{Phase: corev1.PodPhase(word.Draw(t, "phase"))},
	}
	if rapid.Bool().Draw(t, "is deleted") {
		pod.DeletionTimestamp = new(at("deleted"))
	}
	for range rapid.IntRange(0, 2).Draw(t, "owners") {
		pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{
			APIVersion: word.Draw(t, "version of the owner"), Kind: word.Draw(t, "kind of the owner"), Name: word.Draw(t, "name of the owner"),
			UID: types.UID(word.Draw(t, "uid of the owner")), Controller: flag("controller"), BlockOwnerDeletion: flag("blocks"),
		})
	}
	for range rapid.IntRange(0, 2).Draw(t, "containers") {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: word.Draw(t, "container"), Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewMilliQuantity(int64(rapid.IntRange(0, 3).Draw(t, "cpu")), resource.DecimalSI),
			}},
		})
	}
	for range rapid.IntRange(0, 2).Draw(t, "conditions") {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodConditionType(word.Draw(t, "condition")), Status: corev1.ConditionTrue, Message: word.Draw(t, "message"), LastTransitionTime: at("since"),
		})
	}
	return pod
}

// TestRecordIsThePod checks that a pod can be restored from its record, regardless of the other
// stored records.
func TestRecordIsThePod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &encoder{}
		var pods []*corev1.Pod
		var records []*record
		for range rapid.IntRange(1, 5).Draw(t, "pods") {
			pod := anyPod(t)
			before := pod.DeepCopy()
			r, err := e.record(pod)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, pod); diff != "" {
				t.Fatalf("record changed the pod: %s", diff)
			}
			pods, records = append(pods, pod), append(records, r)
		}
		for i, r := range records {
			if diff := cmp.Diff(pods[i], r.pod(), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("pod %d differs when restored: %s", i, diff)
			}
			if meta := r.GetObjectMeta(); meta.GetName() != pods[i].Name || meta.GetNamespace() != pods[i].Namespace || meta.GetResourceVersion() != pods[i].ResourceVersion {
				t.Fatalf("the record of pod %d says that it is %s/%s at %s", i, meta.GetNamespace(), meta.GetName(), meta.GetResourceVersion())
			}
		}
	})
}

// workloadPod returns the i-th pod of a workload, with only the fields that the manager caches.
func workloadPod(i int) *corev1.Pod {
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("service-%05d-7c9d8f6b5d-%05x", i/30, i), Namespace: "shop", UID: types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i)),
			ResourceVersion: fmt.Sprint(1_000_000 + i), CreationTimestamp: metav1.Unix(int64(i), 0),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: fmt.Sprintf("service-%05d-7c9d8f6b5d", i/30),
				UID: types.UID(fmt.Sprintf("%08x-0000-4000-8000-ffffffffffff", i/30)), Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName:    fmt.Sprintf("node-%d", i%5_000),
			Tolerations: []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))}},
			Containers:  []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: requests}}, {Name: "proxy", Resources: corev1.ResourceRequirements{Requests: requests}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: "tidekeeper.dev/start-up", Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(int64(i), 0), Message: fmt.Sprintf("0,1,%d,0,0", i%20)},
		}},
	}
}

func live() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestRecordIsSmall checks that a record takes at most a fifth of the memory of its Pod.
func TestRecordIsSmall(t *testing.T) {
	const count = 3_000
	before := live()
	pods := make([]*corev1.Pod, count)
	for i := range pods {
		pods[i] = workloadPod(i)
	}
	perPod := (live() - before) / count
	runtime.KeepAlive(pods)

	before = live()
	e := &encoder{}
	records := make([]*record, count)
	for i := range records {
		r, err := e.record(workloadPod(i))
		if err != nil {
			t.Fatal(err)
		}
		records[i] = r
	}
	perRecord := (live() - before) / count
	runtime.KeepAlive(records)
	runtime.KeepAlive(e)
	t.Logf("a pod takes %d bytes, a record %d", perPod, perRecord)
	if perRecord*5 > perPod {
		t.Errorf("a record takes %d bytes where a pod takes %d, want at most a fifth", perRecord, perPod)
	}
}

// TestInternTableForgets checks that an internTable drops values that are no longer referenced.
func TestInternTableForgets(t *testing.T) {
	var table internTable[string, string]
	a := table.intern("key", func() *string { return new("value") })
	if b := table.intern("key", func() *string { return new("another") }); b != a {
		t.Errorf("the same key gave %q and %q, want one value", *a, *b)
	}
	runtime.KeepAlive(a)
	waitfor.Nil(t, "no value that is not referenced is in the table", func() error {
		runtime.GC()
		table.mu.Lock()
		defer table.mu.Unlock()
		if left := len(table.values); left > 0 {
			return fmt.Errorf("%d are", left)
		}
		return nil
	})
}

func BenchmarkRecord(b *testing.B) {
	pod, e := workloadPod(1), &encoder{}
	b.Run("of a pod", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = e.record(pod)
		}
	})
	b.Run("back", func(b *testing.B) {
		r, _ := e.record(pod)
		b.ReportAllocs()
		for b.Loop() {
			_ = r.pod()
		}
	})
}
