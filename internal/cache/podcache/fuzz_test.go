// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// FuzzRecord checks that arbitrary bytes result in a record or an error. If the bytes are an
// encoded pod in canonical form, the Pod restored from the record must equal the decoded pod after
// the transform.
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
