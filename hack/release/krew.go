// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sigs.k8s.io/yaml"
)

// packed describes the plugin's archive for a platform.
type packed struct {
	platform
	name, sha256 string
}

// krewOf returns the manifest with which krew installs the plugin's archives from url.
func krewOf(version, url string, archives []packed) ([]byte, error) {
	var platforms []any
	for _, a := range archives {
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": a.OS, "arch": a.Architecture}},
			"uri":      url + "/" + a.name,
			"sha256":   a.sha256,
			"bin":      executable("kubectl-tide", a.OS),
		})
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]any{"name": "tide"},
		"spec": map[string]any{
			"version":          version,
			"homepage":         "https://tidekeeper.dev",
			"shortDescription": "Show node pools and scheduled restarts",
			"description":      "Shows the node pools, scheduled restarts and pod start-ups of Tidekeeper:\nwhat will be restarted and why not, how much more fits, what is lost with a node.",
			"platforms":        platforms,
		},
	})
}

func executable(program, os string) string {
	if os == "windows" {
		return program + ".exe"
	}
	return program
}
