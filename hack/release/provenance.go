// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"slices"
)

// resource identifies a file or a source in an in-toto statement.
type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

// statement is an in-toto statement that contains SLSA provenance.
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

// Type identifiers of the statement and of its predicate.
const (
	statementType  = "https://in-toto.io/Statement/v1"
	provenanceType = "https://slsa.dev/provenance/v1"
)

// buildType is the URL of the page that describes how to rebuild a release with the parameters in
// its provenance.
const buildType = "https://tidekeeper.dev/docs/tasks/verify-a-release#build-the-release-again"

// provenanceOf returns a statement with the commit, the Go version and the parameters from which
// the files were built. make release can run on any machine, so the statement is vouched for only
// by the owner of the signing key.
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
