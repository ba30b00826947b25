// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"slices"
)

// resource is a file or a source in a statement of in-toto.
type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

// statement is one of in-toto, with provenance of SLSA.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

type provenance struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]any    `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []resource        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// Types of the statement.
const (
	statementType  = "https://in-toto.io/Statement/v1"
	provenanceType = "https://slsa.dev/provenance/v1"
)

// buildType names the page that says how to build the release again, which the parameters below are for.
const buildType = "https://tidekeeper.dev/docs/tasks/verify-a-release#build-the-release-again"

// provenanceOf says from which commit, by which Go and with which parameters the files were made. The
// owner of the key that signs it vouches for that: make release runs on any machine.
func provenanceOf(r *release, builds []string) ([]byte, error) {
	s := statement{Type: statementType, PredicateType: provenanceType}
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		s.Subject = append(s.Subject, resource{Name: name, Digest: map[string]string{"sha256": sha(r.files[name])}})
	}
	definition := &s.Predicate.BuildDefinition
	definition.BuildType = buildType
	definition.ExternalParameters = map[string]any{"VERSION": r.version, "IMAGE": r.image, "URL": r.url, "ARCHIVES": builds}
	definition.InternalParameters = map[string]string{"go": r.goVersion}
	definition.ResolvedDependencies = []resource{{URI: "git+https://" + modulePath, Digest: map[string]string{"gitCommit": r.commit}}}
	s.Predicate.RunDetails.Builder.ID = "https://" + modulePath + "/Makefile"
	data, err := json.MarshalIndent(s, "", "  ")
	return append(data, '\n'), err
}
