// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	testclock "k8s.io/utils/clock/testing"
)

// rawObject is a marshaled object.
type rawObject []byte

func (r rawObject) Marshal() ([]byte, error) { return r, nil }

// withDamage returns an encoded pod with an invalid volume. Its kept fields can still be decoded.
func withDamage(t *testing.T, pod *corev1.Pod) rawObject {
	spec := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte{0xff})
	return protowire.AppendBytes(protowire.AppendTag(marshal(t, pod), 2, protowire.BytesType), spec)
}

// metricsOfPods returns the metrics that an informer of pods should have.
func metricsOfPods(fallbacks, verified, differences float64) map[string]float64 {
	return map[string]float64{
		"tidekeeper_cache_fallbacks_total of Node": 0, "tidekeeper_cache_fallbacks_total of Pod": fallbacks,
		"tidekeeper_cache_decoding_verified_total of Node": 0, "tidekeeper_cache_decoding_verified_total of Pod": verified,
		"tidekeeper_cache_decoding_differences_total of Node": 0, "tidekeeper_cache_decoding_differences_total of Pod": differences,
	}
}

// TestVerifiedPods checks that differences from client-go's objects are counted and that
// client-go's objects are cached. It covers pod fields that the mask lacks as well as entire
// responses.
func TestVerifiedPods(t *testing.T) {
	pod := func(name, version string) *corev1.Pod {
		p := versioned(name, version)
		p.Spec.Priority = new(int32(7))
		return p
	}
	list := podPage(t, metav1.ListMeta{ResourceVersion: "7"}, pod("a", "1"), pod("b", "2"))
	modified := frame(t, watch.Modified, "Pod", pod("b", "8"))
	// If the list metadata is repeated, client-go merges it, so that its continue token differs.
	twice := marshal(t, &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "more"}, Items: []corev1.Pod{*pod("a", "1")}})
	version := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), []byte("8"))
	twice = protowire.AppendBytes(protowire.AppendTag(twice, 1, protowire.BytesType), version)
	for _, tt := range []struct {
		name, without string
		list, events  []byte
		pods          []string
		metrics       map[string]float64
	}{
		{"alike", "", list, modified, []string{"a 1", "b 8"}, metricsOfPods(0, 3, 0)},
		{"a field that is not decoded", "spec.priority", list, modified, []string{"a 1", "b 8"}, metricsOfPods(0, 3, 3)},
		{"another list", "", inEnvelope("PodList", twice), nil, []string{"typed 70", "watched 71"}, metricsOfPods(1, 0, 1)},
		{"a page that client-go does not understand", "", inEnvelope("PodList", protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), withDamage(t, pod("a", "1")))),
			nil, []string{"typed 70", "watched 71"}, metricsOfPods(1, 0, 1)},
		{"an event that client-go does not understand", "", list, frame(t, watch.Modified, "Pod", withDamage(t, pod("b", "8"))),
			[]string{"a 1", "b 2", "watched 71"}, metricsOfPods(1, 2, 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			content := Content{Pods: testContent(), Verify: testclock.NewFakePassiveClock(time.Unix(0, 0))}
			content.Pods.Fields = slices.DeleteFunc(content.Pods.Fields, func(f string) bool { return f == tt.without })
			s := runContent(t, &script{lists: []handle{body(tt.list)}, watches: []handle{body(tt.events)}}, &corev1.Pod{}, content, slim)
			s.expect(t, tt.pods...)
			for _, object := range s.pods.GetStore().List() {
				if got := object.(*corev1.Pod); got.ResourceVersion < "70" && (got.Spec.Priority == nil || *got.Spec.Priority != 7) {
					t.Errorf("%s has the priority %v", got.Name, got.Spec.Priority)
				}
			}
			s.expectMetrics(t, tt.metrics)
		})
	}
}

// TestVerifiedNodes checks that Nodes are compared after they have been transformed.
func TestVerifiedNodes(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "8", Labels: map[string]string{"a": "b"}}, Spec: corev1.NodeSpec{ProviderID: "dropped"}}
	list := &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []corev1.Node{*node}}
	keep := func(in any) (any, error) {
		n := in.(*corev1.Node)
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, ResourceVersion: n.ResourceVersion, Labels: n.Labels}}, nil
	}
	for differences, fields := range [][]string{{"metadata.name", "metadata.resourceVersion", "metadata.labels"}, {"metadata.name", "metadata.resourceVersion"}} {
		content := Content{Nodes: fields, Verify: testclock.NewFakePassiveClock(time.Unix(0, 0))}
		s := runContent(t, &script{lists: []handle{body(inEnvelope("NodeList", marshal(t, list)))}, watches: []handle{quiet}}, &corev1.Node{}, content, keep)
		s.expect(t, "n 8")
		got, _, _ := s.pods.GetStore().GetByKey("n")
		want, _ := keep(node)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("fields %q: the node (-want +got):\n%s", fields, diff)
		}
		metrics := metricsOfPods(0, 0, 0)
		metrics["tidekeeper_cache_decoding_verified_total of Node"] = 1
		metrics["tidekeeper_cache_decoding_differences_total of Node"] = float64(differences)
		s.expectMetrics(t, metrics)
	}
}

// TestLogOfDifferences checks that the number of log messages is limited regardless of the number
// of differences, and that the log contains field names but no field values.
func TestLogOfDifferences(t *testing.T) {
	w := newTestSource(t, &script{})
	now := testclock.NewFakePassiveClock(time.Unix(1000, 0))
	w.verify(scheme.Scheme, now, newMetrics(), w.newDecoder().(*podDecoder).toRecord)
	var lines []string
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	read, whole := podNamed("a", "b"), podNamed("a", "b")
	whole.Spec.Containers = append(slices.Clone(whole.Spec.Containers[:len(whole.Spec.Containers)-1]), corev1.Container{Name: "hidden"})
	for range 100 {
		if _, err := w.verifier.object(ctx, read, whole); err != nil {
			t.Fatal(err)
		}
	}
	if len(lines) != 5 {
		t.Errorf("%d lines, want 5", len(lines))
	}
	now.SetTime(now.Now().Add(time.Minute))
	_ = w.verifier.notUnderstood(ctx, errors.New("hidden"))
	if len(lines) != 6 {
		t.Errorf("%d lines after a minute, want another", len(lines))
	}
	for i, line := range lines {
		if strings.Contains(line, "hidden") || i < 5 && !strings.Contains(line, `"field"=".spec.containers[0]`) {
			t.Errorf("the log: %s", line)
		}
	}
}

// TestVerifiedTransformFails checks that the verifier returns an error of the transform.
func TestVerifiedTransformFails(t *testing.T) {
	w := newTestSource(t, &script{})
	w.verify(scheme.Scheme, testclock.NewFakePassiveClock(time.Unix(0, 0)), newMetrics(), nil)
	failure := errors.New("no")
	w.verifier.transform = func(any) (any, error) { return nil, failure }
	if _, err := w.verifier.object(t.Context(), podNamed("a", "b"), podNamed("a", "b")); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}
