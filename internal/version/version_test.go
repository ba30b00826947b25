// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime/debug"
	"testing"
)

func TestFromBuildInfo(t *testing.T) {
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123abc"}}
	for _, tc := range []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{"installed by version", debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: commit}, "v1.2.3"},
		{"built in a checkout", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: commit}, "0123abc"},
		{"built without version control", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "unknown"},
		{"nothing recorded", debug.BuildInfo{}, "unknown"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := fromBuildInfo(&tc.info); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestStringIsNeverEmpty(t *testing.T) {
	if String() == "" {
		t.Error("the version is empty")
	}
}
