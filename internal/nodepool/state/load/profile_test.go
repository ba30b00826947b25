// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/resources"
)

// TestProfiles checks that equal profiles are interned, that different profiles stay distinct, and
// that unused profiles are dropped.
func TestProfiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		known := profiles{}
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) resources.Amount {
			return resources.Amount{Resource: rapid.SampledFrom([]corev1.ResourceName{"", "a", "b", "ab"}).Draw(t, "resource"), Value: rapid.SampledFrom([]int64{0, 1, 255, 256, 257, 1 << 40}).Draw(t, "value")}
		}), 0, 3)
		var taken []*Profile
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			if len(taken) > 0 && rapid.Bool().Draw(t, "release") {
				i := rapid.IntRange(0, len(taken)-1).Draw(t, "which")
				known.release(taken[i])
				taken = append(taken[:i], taken[i+1:]...)
			} else {
				amounts := list.Draw(t, "amounts")
				s := known.intern(Profile{Requests: amounts})
				if diff := cmp.Diff(amounts, s.Requests, cmp.AllowUnexported(resources.Amount{}), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("got another profile (-want +got):\n%s", diff)
				}
				taken = append(taken, s)
			}
			distinct := map[string]*Profile{}
			for _, s := range taken {
				text := fmt.Sprint(s.Requests)
				if other, ok := distinct[text]; ok && other != s {
					t.Fatalf("two copies of %s", text)
				}
				distinct[text] = s
			}
			if len(known) != len(distinct) {
				t.Fatalf("%d profiles are known, %d are in use", len(known), len(distinct))
			}
		}
		for _, s := range taken {
			known.release(s)
		}
		if len(known) > 0 {
			t.Fatalf("no profile is in use, but %d are known", len(known))
		}
	})
}
