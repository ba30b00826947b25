// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"bytes"
	"errors"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Whatever bytes are taken for a pod, there is a record or an error. If a decoder accepts them all,
// and writes them the same, there is the record of the decoded pod.
func FuzzRecord(f *testing.F) {
	f.Add(marshal(f, typicalPod(1)))
	f.Add(marshal(f, podNamed("a", "b")))
	f.Add([]byte{0x0a, 0x80, 0x00})
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, _ := newTestDecoder(t)
		pod := &corev1.Pod{}
		sound := pod.Unmarshal(raw) == nil && bytes.Equal(marshal(t, pod), raw)
		for range 2 {
			r, err := d.record(bytes.Clone(raw))
			if !sound {
				continue
			}
			if err != nil {
				t.Fatalf("a pod that a decoder accepts: %v", err)
			}
			want, err := slim(pod)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.pod(); !equality.Semantic.DeepEqual(want, got) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	})
}

// What prune leaves is no longer than what it was given, and pruning it again changes nothing.
func FuzzPrune(f *testing.F) {
	f.Add(marshal(f, typicalPod(1)))
	f.Add([]byte{0x0a, 0x83, 0x00, 0x12, 0x01, 0x61})
	w, err := newPodWire(&encoder{}, testContent())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		pruned, err := w.kept.prune(bytes.Clone(raw))
		if err != nil {
			return
		}
		if len(pruned) > len(raw) {
			t.Fatalf("%d bytes of %d are left", len(pruned), len(raw))
		}
		again, err := w.kept.prune(bytes.Clone(pruned))
		if err != nil || !bytes.Equal(pruned, again) {
			t.Fatalf("once %x, twice %x, %v", pruned, again, err)
		}
	})
}

// Whatever an answer has, reading it ends with the end of the answer or with an error.
func FuzzAnswer(f *testing.F) {
	f.Add(podPage(f, metav1.ListMeta{ResourceVersion: "7", Continue: "more"}, podNamed("a", "b")))
	f.Add(frame(f, watch.Added, "Pod", podNamed("a", "b")))
	f.Add([]byte("\x00\x00\x00\x01{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_ = readPage(bytes.NewReader(raw), "PodList", func(*metav1.ListMeta) {}, func([]byte) error { return nil })
		in := bytes.NewReader(raw)
		var memory buffer
		for {
			message, err := readFrame(in, &memory)
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, errTooLarge) {
					t.Fatal(err)
				}
				return
			}
			if _, err := parseEvent(message); err != nil && !errors.Is(err, errNotUnderstood) {
				t.Fatal(err)
			}
		}
	})
}
