// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"runtime/debug"
	"strings"
)

// component is a program or a module in a CycloneDX document.
type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Purl    string `json:"purl"`
}

// sbom is a CycloneDX document that lists the modules linked into a program.
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

// sbomOf returns a program's CycloneDX document, with the modules in its build information and Go's
// standard library.
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

// purl returns a Go module's package URL, by which scanners identify the module.
func purl(path, version string) string {
	name := "pkg:golang/" + path
	if version != "" {
		name += "@" + strings.ReplaceAll(version, "+", "%2B")
	}
	return name
}
