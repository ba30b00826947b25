// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// rejected lists the schema fields that the API server rejects whenever they are set.
var rejected = map[string]bool{"NodePool.nodeTemplate.taints[].eviction": true}

// TestEachFieldIsEdited checks that one of the files sets each schema field, including new fields,
// and that a test runs each file.
func TestEachFieldIsEdited(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".yaml")
		if !slices.ContainsFunc(objects, func(o object) bool { return o.name == name }) {
			t.Errorf("no test plays %s", file)
		}
		text, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			t.Fatal(err)
		}
		documents := strings.Split(string(text), "\n---\n")
		var sample map[string]any
		if err := yaml.Unmarshal([]byte(documents[len(documents)-1]), &sample); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		collect(has, sample["kind"].(string), sample["spec"])
	}
	definitions, err := filepath.Glob(filepath.Join(framework.Root(), "config", "crd", "bases", "*.yaml"))
	if err != nil || len(definitions) == 0 {
		t.Fatalf("the definitions are %q, %v", definitions, err)
	}
	for _, file := range definitions {
		text, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		described := map[string]bool{}
		describe(described, crd.Spec.Names.Kind, &spec)
		for _, field := range slices.Sorted(maps.Keys(described)) {
			if !has[field] && !rejected[field] {
				t.Errorf("no object has %s", field)
			}
		}
		t.Logf("%s: %d fields", crd.Spec.Names.Kind, len(described))
	}
}

// TestPageNamesEachObject checks that the table of bad specs in reliability.md names each object.
func TestPageNamesEachObject(t *testing.T) {
	page, err := os.ReadFile("../reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| kind | objects |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, o := range objects {
		if !strings.Contains(table, "`"+o.name+"`") {
			t.Errorf("the page does not name the object %s", o.name)
		}
	}
}

// collect adds the paths of a value's fields to `fields`; list items have the path element [].
func collect(fields map[string]bool, at string, value any) {
	fields[at] = true
	switch value := value.(type) {
	case map[string]any:
		for name, inside := range value {
			collect(fields, at+"."+name, inside)
		}
	case []any:
		for _, item := range value {
			collect(fields, at+"[]", item)
		}
	}
}

// describe adds the paths of a schema's fields to `fields`.
func describe(fields map[string]bool, at string, s *apiextensionsv1.JSONSchemaProps) {
	fields[at] = true
	for name, property := range s.Properties {
		describe(fields, at+"."+name, &property)
	}
	if s.Items != nil {
		describe(fields, at+"[]", s.Items.Schema)
	}
}
