// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import "testing"

func TestSecondsWithChange(t *testing.T) {
	for _, tt := range []struct {
		length int32
		change *int32
		want   string
	}{
		{9, nil, "9s"},
		{9, new(int32(0)), "9s"},
		{9, new(int32(2)), "9s (+2s)"},
		{200, new(int32(-130)), "3m20s (-2m10s)"},
	} {
		if got := SecondsWithChange(tt.length, tt.change); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
