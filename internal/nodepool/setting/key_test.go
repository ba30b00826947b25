// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestSlotNoExecute(t *testing.T) {
	for s, want := range map[Key]bool{
		TaintKey("gpu", corev1.TaintEffectNoExecute):        true,
		TaintKey("gpu", corev1.TaintEffectNoSchedule):       false,
		TaintKey("NoExecute", corev1.TaintEffectNoSchedule): false,
		{Taint, "NoExecute"}:                                false,
		LabelKey("gpu:NoExecute"):                           false,
		AnnotationKey(":NoExecute"):                         false,
	} {
		if got := s.IsNoExecute(); got != want {
			t.Errorf("IsNoExecute of %v = %v; want %v", s, got, want)
		}
	}
}
