// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"
	"testing"
	"time"
	"unsafe"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

// withFacts returns the content of testContent together with the facts about pods.
func withFacts() KeptPodFields {
	content := testContent()
	content.Facts, content.Ready = drain.NewHasher(maphash.MakeSeed()), podtimeline.IsReady
	return content
}

// newFactsDecoder returns a decoder that keeps facts about pods and is set up as in an informer,
// and a counter of completely decoded pods.
func newFactsDecoder(t testing.TB, content KeptPodFields) (d *podDecoder, count *int) {
	t.Helper()
	w, err := newRecordMaker(&encoder{}, content)
	if err != nil {
		t.Fatal(err)
	}
	i := &informer{encoder: w.encoder, decoding: w, list: &pagedLister{}}
	i.convertBy(slim)
	convert := w.toRecord
	count = new(int)
	w.toRecord = func(object kruntime.Object) (kruntime.Object, error) {
		*count++
		return convert(object)
	}
	return newPodDecoder(w), count
}

// drainedPod draws a pod with the fields that decide whether it blocks a drain.
func drainedPod(t *rapid.T) *corev1.Pod {
	pod := typicalPod(rapid.IntRange(0, 2).Draw(t, "i"))
	pod.Labels = rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "statefulset.kubernetes.io/pod-name"}), rapid.StringMatching(`[a-c]{0,2}`), 0, 4).Draw(t, "labels")
	if rapid.IntRange(0, 9).Draw(t, "has many labels") == 0 {
		for i := range 100 {
			pod.Labels[fmt.Sprint(i)] = ""
		}
	}
	pod.Finalizers = rapid.SliceOfN(rapid.SampledFrom([]string{"batch.kubernetes.io/job-tracking", "example.com/hold"}), 0, 2).Draw(t, "finalizers")
	pod.Spec.TerminationGracePeriodSeconds = rapid.Ptr(rapid.SampledFrom([]int64{-1, 0, 600, 601, 1<<63 - 1}), true).Draw(t, "grace")
	if rapid.Bool().Draw(t, "is a mirror") {
		pod.Annotations[corev1.MirrorPodAnnotationKey] = rapid.SampledFrom([]string{"", "x"}).Draw(t, "mirror")
	}
	for range rapid.IntRange(0, 2).Draw(t, "volumes") {
		v := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}
		if rapid.Bool().Draw(t, "is an emptyDir") {
			v.VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "Memory"}}
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, v)
	}
	if rapid.Bool().Draw(t, "is not ready") {
		pod.Status.Conditions[2].Status = corev1.ConditionFalse
	}
	return pod
}

// TestFactsOfBytes checks that the facts read from a pod's bytes equal the facts about the decoded
// pod, both for a pod that is decoded and for a pod that resembles an earlier decoded pod.
func TestFactsOfBytes(t *testing.T) {
	content := withFacts()
	d, decoded := newFactsDecoder(t, content)
	first := mustRecord(t, d, marshal(t, typicalPod(0)))
	rapid.Check(t, func(t *rapid.T) {
		pod := drainedPod(t)
		raw, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			before := *decoded
			r, err := d.record(bytes.Clone(raw))
			if err != nil {
				t.Fatal(err)
			}
			if !r.facts.Equal(content.Facts.Facts(pod)) {
				t.Fatalf("the facts differ from those of the decoded pod; it was decoded %d times", *decoded-before)
			}
			if ready := pod.Status.Conditions[2].Status == corev1.ConditionTrue; content.Ready(r.lastCondition) != ready {
				t.Fatalf("it is ready: %t", !ready)
			}
		}
	})
	if first.common == nil || *decoded > 100 {
		t.Errorf("%d pods were decoded, which differ in nothing but their facts", *decoded)
	}
}

// TestFactFieldsAreNeeded checks that each field in factFields has an effect on the facts.
func TestFactFieldsAreNeeded(t *testing.T) {
	all := slices.Clone(factFields)
	defer func() { factFields = all }()
	pod := typicalPod(0)
	pod.Labels, pod.Finalizers = map[string]string{"app": "web"}, []string{"x/y"}
	pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""}
	pod.Spec.TerminationGracePeriodSeconds = new(int64(7200))
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	for i := range all {
		factFields = slices.Delete(slices.Clone(all), i, i+1)
		content := withFacts()
		d, _ := newFactsDecoder(t, content)
		raw := marshal(t, pod)
		for range 2 { // the pod is decoded, then recognized
			if r := mustRecord(t, d, raw); r.facts.Equal(content.Facts.Facts(pod)) {
				t.Errorf("%s is not needed", all[i])
			}
		}
	}
}

func mustRecord(t testing.TB, d *podDecoder, raw []byte) *record {
	t.Helper()
	r, err := d.record(bytes.Clone(raw))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFactsTakeLittleMemory checks that facts do not move a record into a larger size class of the
// allocator, and that the pods of a workload share their facts, even during a rollout that changes
// other labels. Unshared labels of a pod must not increase the memory of other pods.
func TestFactsTakeLittleMemory(t *testing.T) {
	if size := unsafe.Sizeof(record{}); size > 128 {
		t.Errorf("a record has %d bytes, want at most 128", size)
	}
	d, _ := newFactsDecoder(t, withFacts())
	pod := func(i int, labels map[string]string) *record {
		p := typicalPod(0)
		p.Name, p.Labels = fmt.Sprint("p", i), labels
		return mustRecord(t, d, marshal(t, p))
	}
	old, now := map[string]string{"a": "b", "version": "1"}, map[string]string{"a": "b", "version": "2"}
	distinct := map[drain.Facts]bool{}
	var alive []*record
	for i := range 100 {
		version := old
		if i%3 == 0 {
			version = now
		}
		r := pod(i, version)
		alive, distinct[r.facts] = append(alive, r), true
	}
	if len(distinct) != 2 {
		t.Errorf("the pods of two versions have %d copies of their facts", len(distinct))
	}
	for i := range 100 {
		alive = append(alive, pod(i, map[string]string{"a": "b", "id": fmt.Sprint(i)}))
	}
	for _, r := range alive {
		if r.common != alive[0].common {
			t.Fatal("pods do not share what they have in common, because of their labels")
		}
	}
}

// TestEachNode checks that the pods of the selected nodes are listed by node, with their facts.
func TestEachNode(t *testing.T) {
	w, content := &Workloads{}, withFacts()
	create := func(lw cache.ListerWatcher, _ kruntime.Object, _ time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
		decoding, err := newRecordMaker(&encoder{}, content)
		if err != nil {
			t.Fatal(err)
		}
		return newPodInformer(lw, 0, indexers, decoding.encoder, decoding, nil)
	}
	source := cachetesting.NewFakeControllerSource()
	i := w.Follow(create)(source, &corev1.Pod{}, 0, cache.Indexers{}).(*informer)
	listed := func() (map[string][]string, error) {
		got := map[string][]string{}
		err := w.EachNode(func(node string) bool { return node != "other" }, func(node string, running []drain.CachedPod) {
			for _, p := range running {
				got[node] = append(got[node], p.Name)
				whole := podNamed(p.Name, node)
				if !p.Facts.Equal(content.Facts.Facts(whole)) || p.Ready || p.Namespace.Value() != "shop" || p.Source.Pod().Name != p.Name {
					t.Errorf("the pod %s is %+v", p.Name, p)
				}
			}
			slices.Sort(got[node])
		})
		return got, err
	}
	if _, err := listed(); err == nil {
		t.Error("a cache that is not synced has an answer")
	}
	for name, node := range map[string]string{"p": "a", "q": "a", "r": "b", "s": "other", "t": ""} {
		source.Add(podNamed(name, node))
	}
	start(t, i)
	if !cache.WaitForCacheSync(t.Context().Done(), i.HasSynced) {
		t.Fatal("the cache is not synced")
	}
	got, err := listed()
	if diff := gocmp.Diff(map[string][]string{"": {"t"}, "a": {"p", "q"}, "b": {"r"}}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if w.Facts() != content.Facts {
		t.Error("the hasher is another")
	}

	without, _ := emptyCache(t)
	if err := without.EachNode(func(string) bool { return true }, nil); err != nil || without.Facts() != nil {
		t.Errorf("a cache without facts: %v", err)
	}
}
