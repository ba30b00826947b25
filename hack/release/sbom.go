// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"runtime/debug"
	"slices"
	"strings"
)

// component is a program or a module in a CycloneDX document.
type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Purl    string `json:"purl"`
}

// sbom is a CycloneDX document that lists the modules linked into the programs of an archive.
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

// sbomOf returns the CycloneDX document of an archive whose first program is the given one. It has
// the modules in the build information of each program in the archive, and Go's standard library.
func sbomOf(program, version string, infos ...*debug.BuildInfo) ([]byte, error) {
	list := sbom{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{Component: component{
		Type: "application", Name: program, Version: version, Purl: purl(infos[0].Main.Path, version),
	}}}
	add := func(name, version string) {
		if c := (component{Type: "library", Name: name, Version: version, Purl: purl(name, version)}); !slices.Contains(list.Components, c) {
			list.Components = append(list.Components, c)
		}
	}
	for _, info := range infos {
		for _, m := range modulesOf(info) {
			add(m.source, m.version)
		}
	}
	add("stdlib", strings.TrimPrefix(infos[0].GoVersion, "go"))
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
