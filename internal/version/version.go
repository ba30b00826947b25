// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version provides the version of this binary.
package version

import "runtime/debug"

// version is set at link time:
//
//	go build -ldflags "-X tidekeeper.dev/tidekeeper/internal/version.version=v1.2.3"
var version string

// String returns the version of this binary, for instance v1.2.3. If no version was set at link
// time, it returns the version that the Go toolchain has recorded: the module version after `go
// install …@v1.2.3`, otherwise the commit. If there is none, it returns "unknown".
func String() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return fromBuildInfo(info)
}

func fromBuildInfo(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && setting.Value != "" {
			return setting.Value
		}
	}
	return "unknown"
}
