// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version returns the version of this binary.
package version

import "runtime/debug"

// version is set when the binary is linked:
//
//	go build -ldflags "-X tidekeeper.dev/tidekeeper/internal/version.version=v1.2.3"
var version string

// String returns the version of this binary, for instance v1.2.3. If no version was set at link
// time, it returns the version recorded by the Go toolchain (the module version for `go install
// …@v1.2.3`, else the commit), or "unknown". It is never empty.
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
