// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"runtime/debug"
	"strings"
)

// component is a program or a module in a list of CycloneDX.
type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Purl    string `json:"purl"`
}

// sbom is the part of a list of CycloneDX that says which modules a program is linked from.
type sbom struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

// sbomOf lists the modules in the build information of a program, and Go's own library.
func sbomOf(program, version string, info *debug.BuildInfo) ([]byte, error) {
	list := sbom{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{Component: component{
		Type: "application", Name: program, Version: version, Purl: purl(info.Main.Path, version),
	}}}
	for _, m := range modulesOf(info) {
		list.Components = append(list.Components, component{Type: "library", Name: m.source, Version: m.version, Purl: purl(m.source, m.version)})
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	list.Components = append(list.Components, component{Type: "library", Name: "stdlib", Version: goVersion, Purl: purl("stdlib", goVersion)})
	data, err := json.MarshalIndent(list, "", "  ")
	return append(data, '\n'), err
}

// purl is the name by which scanners know a module.
func purl(path, version string) string {
	name := "pkg:golang/" + path
	if version != "" {
		name += "@" + strings.ReplaceAll(version, "+", "%2B")
	}
	return name
}
