// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// published lists modules that contain CustomResourceDefinitions. Modules missing in the module
// cache are skipped.
var published = []struct{ module, files string }{
	{"k8s.io/apiextensions-apiserver", "test/integration/ratcheting_test_cases/crds/*.yaml"},
	{"k8s.io/kubernetes", "cluster/addons/volumesnapshots/crd/*.yaml"},
	{"github.com/rabbitmq/cluster-operator", "config/crd/bases/*.yaml"},
	{"github.com/argoproj/argo-rollouts", "manifests/crds/*.yaml"},
	{"github.com/cert-manager/cert-manager", "deploy/crds/*.yaml"},
}

// mostEdits is the maximum number of edits per CustomResourceDefinition. Each edit takes about a
// second.
const mostEdits = 5_000

// TestPublishedDefinitions checks that widely used CustomResourceDefinitions result in edits with
// names, and that the edits can be applied to a minimal and to an extensive object.
func TestPublishedDefinitions(t *testing.T) {
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../../examples/guestbook/config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("the definitions of the example: %q, %v", files, err)
	}
	for _, p := range published {
		versions, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(cache)), p.module+"@*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(versions) == 0 {
			t.Logf("%s is not there", p.module)
			continue
		}
		found, err := filepath.Glob(filepath.Join(versions[len(versions)-1], p.files))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	read := 0
	for _, file := range files {
		text, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			t.Fatal(err)
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			var crd apiextensionsv1.CustomResourceDefinition
			if err := decoder.Decode(&crd); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, version := range crd.Spec.Versions {
				if version.Schema == nil {
					continue
				}
				read++
				t.Run(crd.Name+"/"+version.Name, func(t *testing.T) {
					tryDefinition(t, version.Schema.OpenAPIV3Schema)
				})
			}
		}
	}
	if read < 10 {
		t.Errorf("only %d definitions were tried", read)
	}
}

func tryDefinition(t *testing.T, schema *Schema) {
	little := map[string]any{"apiVersion": "example.com/v1", "kind": "A", "metadata": map[string]any{"name": "a"}}
	much := map[string]any{"apiVersion": "example.com/v1", "kind": "A", "metadata": map[string]any{"name": "a"}}
	for _, e := range Of(schema, little) {
		if e.Class == Plausible && len(e.Path) == 1 {
			if next, ok := e.Apply(much); ok {
				much = next
			}
		}
	}
	for name, sample := range map[string]map[string]any{"little": little, "much": much} {
		all := Of(schema, sample)
		t.Logf("%s: %d edits", name, len(all))
		if len(all) > mostEdits {
			t.Errorf("%s: there are %d edits", name, len(all))
		}
		names := map[string]bool{}
		for _, e := range all {
			if e.Field == "" || e.What == "" || e.Class == "" {
				t.Errorf("%s: an edit without a name: %+v", name, e)
			}
			if names[e.String()] {
				t.Errorf("%s: two edits are called %s", name, e)
			}
			names[e.String()] = true
			if _, ok := e.Apply(sample); !ok {
				t.Errorf("%s: %s cannot be made", name, e)
			}
		}
	}
}
