// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
)

// Version returns an object version described in YAML.
func Version(t *testing.T, resource, text string) observe.Version {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{}}
	if !strings.HasPrefix(text, "kind: ") {
		text = "kind: Any\n" + text
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = o.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return observe.Version{Type: watch.Added, Resource: resource, Object: o}
}
