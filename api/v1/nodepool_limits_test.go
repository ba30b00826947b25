// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// schema is what the tests read of an OpenAPI schema.
type schema struct {
	MaxLength, MaxProperties, MaxItems *int64
	Properties                         map[string]schema
	Items, AdditionalProperties        *schema
	Validations                        []struct{ Rule, Message string } `json:"x-kubernetes-validations"`
}

// nodePoolSchema returns the schema of the CRD of NodePool.
func nodePoolSchema(t *testing.T) schema {
	t.Helper()
	text, err := os.ReadFile("../../config/crd/bases/tidekeeper.dev_nodepools.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema schema }
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	if len(crd.Spec.Versions) != 1 {
		t.Fatalf("want one version of the CRD, got %d", len(crd.Spec.Versions))
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// The constants and the schema of the CRD name the same bounds.
func TestNodePoolLimits(t *testing.T) {
	root := nodePoolSchema(t)
	spec := root.Properties["spec"].Properties
	for what, bound := range map[string]struct {
		constant int64
		schema   *int64
	}{
		"spec.labels":           {tidekeeperv1.MaxPoolLabels, spec["labels"].MaxProperties},
		"spec.annotations":      {tidekeeperv1.MaxPoolAnnotations, spec["annotations"].MaxProperties},
		"spec.taints":           {tidekeeperv1.MaxPoolTaints, spec["taints"].MaxItems},
		"values of labels":      {tidekeeperv1.MaxLabelValueLength, spec["labels"].AdditionalProperties.MaxLength},
		"values of annotations": {tidekeeperv1.MaxAnnotationValueLength, spec["annotations"].AdditionalProperties.MaxLength},
		"spec.handler":          {tidekeeperv1.MaxHandlerLength, spec["handler"].MaxLength},
		"values of spec.taints": {tidekeeperv1.MaxLabelValueLength, spec["taints"].Items.Properties["value"].MaxLength},
		"values of matchLabels": {tidekeeperv1.MaxLabelValueLength, spec["selector"].Properties["matchLabels"].AdditionalProperties.MaxLength},
	} {
		if bound.schema == nil || *bound.schema != bound.constant {
			t.Errorf("bound of %s: constant %d, schema %v", what, bound.constant, bound.schema)
		}
	}
	rule := fmt.Sprintf("size(self.metadata.name) <= %d", tidekeeperv1.MaxPoolNameLength)
	if !strings.Contains(fmt.Sprint(root.Validations), rule) {
		t.Errorf("no rule %q on NodePool", rule)
	}
}

// The rule and the message of a CEL rule on guarded keys name them all, and no others.
func TestGuardedKeys(t *testing.T) {
	exact, prefix := regexp.MustCompile(`'([a-z][^' ]*)'`), regexp.MustCompile(`startsWith\('([^']+)'\)`)
	spec := nodePoolSchema(t).Properties["spec"].Properties
	for field, guarded := range map[string]tidekeeperv1.GuardedKeys{
		"labels": tidekeeperv1.GuardedLabels, "annotations": tidekeeperv1.GuardedAnnotations, "taints": tidekeeperv1.GuardedTaints,
	} {
		found := false
		for _, rule := range spec[field].Validations {
			if !strings.Contains(rule.Message, "cannot be managed by a pool") {
				continue
			}
			found = true
			var inRule tidekeeperv1.GuardedKeys
			for _, match := range exact.FindAllStringSubmatch(prefix.ReplaceAllString(rule.Rule, "'$1'"), -1) {
				inRule = append(inRule, match[1])
			}
			if diff := cmp.Diff(guarded, inRule); diff != "" {
				t.Errorf("rule of %s (-constant +rule):\n%s", field, diff)
			}
			_, list, _ := strings.Cut(rule.Message, "cannot be managed by a pool: ")
			var inMessage tidekeeperv1.GuardedKeys
			for key := range strings.SplitSeq(list, ", ") {
				inMessage = append(inMessage, strings.TrimSuffix(key, "*"))
			}
			if diff := cmp.Diff(guarded, inMessage); diff != "" {
				t.Errorf("message of %s (-constant +message):\n%s", field, diff)
			}
		}
		if !found {
			t.Errorf("spec.%s has no rule on guarded keys", field)
		}
	}
}

func TestGuardedKeysHas(t *testing.T) {
	keys := tidekeeperv1.GuardedKeys{"a.io/exact", "b.io/"}
	for key, want := range map[string]bool{
		"a.io/exact": true, "a.io/exactly": false, "a.io/": false,
		"b.io/": true, "b.io/any": true, "b.io": false, "x.b.io/any": false,
	} {
		if got := keys.Has(key); got != want {
			t.Errorf("Has(%q): want %v, got %v", key, want, got)
		}
	}
}
