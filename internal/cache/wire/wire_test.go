// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func maskOf(t testing.TB, fields ...string) *Mask {
	t.Helper()
	m, err := NewMask(reflect.TypeFor[corev1.Pod](), fields)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func marshal(t testing.TB, object interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := object.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// sent returns an object in the API server's wire format for responses.
func sent(t testing.TB, kind string, object interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	unknown := &runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: marshal(t, object)}
	return append(bytes.Clone(Prefix), marshal(t, unknown)...)
}

// framed returns a watch event in the API server's wire format, including the frame's length.
func framed(t testing.TB, what, kind string, object interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	event := marshal(t, &metav1.WatchEvent{Type: what, Object: runtime.RawExtension{Raw: sent(t, kind, object)}})
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
}

func testPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Labels: map[string]string{"a": "b", "c": "d"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		},
		Spec: corev1.PodSpec{
			NodeName: "n", Overhead: corev1.ResourceList{"cpu": resource.MustParse("1")},
			Containers: []corev1.Container{{Name: "one", Image: "one:1"}, {Name: "two", Image: "two:2"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"},
	}
}

// TestPrune checks that a mask keeps exactly the named fields, in nested messages and list items,
// and exactly the named keys of maps.
func TestPrune(t *testing.T) {
	all := testPod()
	for _, tt := range []struct {
		name   string
		fields []string
		want   *corev1.Pod
	}{
		{"nothing", nil, &corev1.Pod{}},
		{"a field", []string{"status.phase"}, &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}},
		{"a key", []string{"metadata.labels[c]"}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"c": "d"}}}},
		{"a list", []string{"spec.containers.name"}, &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "one"}, {Name: "two"}}}}},
		{"a field and its part", []string{"spec", "spec.nodeName", "metadata", "metadata.labels[a]", "status"}, all},
		{"a part and its field", []string{"spec.nodeName", "spec", "metadata.labels[a]", "metadata", "status"}, all},
	} {
		t.Run(tt.name, func(t *testing.T) {
			raw, err := maskOf(t, tt.fields...).Prune(marshal(t, all))
			if err != nil {
				t.Fatal(err)
			}
			got := &corev1.Pod{}
			if err := got.Unmarshal(raw); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWrongFields checks that NewMask rejects paths with unknown field names.
func TestWrongFields(t *testing.T) {
	for _, field := range []string{"metadata.nam", "spec.containers.name.first", "spec.nodeName[a]", "metadata.labels[a", "status.", ""} {
		if _, err := NewMask(reflect.TypeFor[corev1.Pod](), []string{field}); err == nil {
			t.Errorf("%q is taken for a field", field)
		}
	}
}

// FuzzPrune checks that Prune never makes a message longer, and that a second Prune changes
// nothing.
func FuzzPrune(f *testing.F) {
	f.Add(marshal(f, testPod()))
	f.Add([]byte{0x0a, 0x83, 0x00, 0x12, 0x01, 0x61})
	m := maskOf(f, "metadata.name", "metadata.labels[a]", "spec.containers.name", "spec.nodeName", "status.conditions")
	f.Fuzz(func(t *testing.T, raw []byte) {
		pruned, err := m.Prune(bytes.Clone(raw))
		if err != nil {
			return
		}
		if len(pruned) > len(raw) {
			t.Fatalf("%d bytes of %d are left", len(pruned), len(raw))
		}
		again, err := m.Prune(bytes.Clone(pruned))
		if err != nil || !bytes.Equal(pruned, again) {
			t.Fatalf("once %x, twice %x, %v", pruned, again, err)
		}
	})
}

// FuzzAnswer checks that reading a response that consists of arbitrary bytes stops at the end of
// the response or with an error.
func FuzzAnswer(f *testing.F) {
	f.Add(sent(f, "PodList", &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "more"}, Items: []corev1.Pod{*testPod()}}))
	f.Add(framed(f, "ADDED", "Pod", testPod()))
	f.Add([]byte("\x00\x00\x00\x01{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_ = ReadPage(bytes.NewReader(raw), "PodList", func(*metav1.ListMeta) {}, func([]byte) error { return nil })
		in := bytes.NewReader(raw)
		var memory Buffer
		for {
			message, err := ReadFrame(in, &memory)
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrTooLarge) {
					t.Fatal(err)
				}
				return
			}
			if _, err := ParseEvent(message); err != nil && !errors.Is(err, ErrNotUnderstood) {
				t.Fatal(err)
			}
		}
	})
}
