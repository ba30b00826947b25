// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"runtime/debug"
	"testing"
)

func TestProgramsAreBuiltForARelease(t *testing.T) {
	for setting, fails := range map[debug.BuildSetting]bool{
		{Key: "-trimpath", Value: "true"}:   false,
		{Key: "GOAMD64", Value: "v1"}:       false,
		{Key: "GOOS", Value: "linux"}:       false,
		{Key: "GOAMD64", Value: "v3"}:       true,
		{Key: "CGO_ENABLED", Value: "1"}:    true,
		{Key: "-tags", Value: "x"}:          true,
		{Key: "vcs.revision", Value: "abc"}: true,
	} {
		if err := builtForRelease(&buildinfo.BuildInfo{Settings: []debug.BuildSetting{setting}}); (err != nil) != fails {
			t.Errorf("%s=%s: %v", setting.Key, setting.Value, err)
		}
	}
}
