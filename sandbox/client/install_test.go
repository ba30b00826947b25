// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestInstallOrder checks that namespaces and CustomResourceDefinitions are applied first, and
// other objects once the API server serves their kinds, and again if kubectl does not find the kinds
// yet. The test calls a fake kubectl and needs no sandbox.
func TestInstallOrder(t *testing.T) {
	t.Parallel()
	var calls []string
	served, found := false, false
	in := installer{kubectl: func(_ context.Context, stdin string, args ...string) (string, error) {
		call := strings.Join(args[:min(2, len(args))], " ")
		if args[0] == "apply" {
			var list struct{ Items []object }
			if err := json.Unmarshal([]byte(stdin), &list); err != nil {
				return "", err
			}
			call = "apply"
			for _, o := range list.Items {
				call += " " + o.kind()
			}
		}
		calls = append(calls, call)
		if call == "apply App" && !found {
			found = true
			return "", errors.New(`no matches for kind "App" in version "example.com/v1"`)
		}
		if args[0] != "get" {
			return "", nil
		}
		if !served {
			served = true
			return `{"resources":[]}`, nil
		}
		return `{"resources":[{"name":"apps"}]}`, nil
	}}
	objects := []object{
		{"kind": "App"},
		{"kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "apps.example.com"}, "spec": map[string]any{
			"group": "example.com", "names": map[string]any{"kind": "App", "plural": "apps"},
			"versions": []any{map[string]any{"name": "v1", "served": true}, map[string]any{"name": "v0", "served": false}},
		}},
		{"kind": "Namespace"},
	}
	if err := in.install(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
	want := []string{"apply CustomResourceDefinition Namespace", "wait --for=condition=Established", "get --raw", "get --raw", "apply App", "apply App"}
	if !slices.Equal(calls, want) {
		t.Errorf("kubectl was called for\n%s\nwant\n%s", strings.Join(calls, "\n"), strings.Join(want, "\n"))
	}
}

// TestInstallReads checks that a folder with a kustomization is built, other paths are read as
// manifests, and an object without a kind is an error that names its Go type.
func TestInstallReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var from []string
	in := installer{kubectl: func(_ context.Context, stdin string, args ...string) (string, error) {
		if args[0] == "kustomize" {
			return "built " + filepath.Base(args[1]), nil
		}
		from = append(from, stdin+" "+filepath.Base(strings.TrimPrefix(args[3], "--filename=")))
		return `{"kind":"A","metadata":{"annotations":{"` + asRead + `":"yes","mine":"1"}}}{"kind":"B"}`, nil
	}}
	for _, folder := range []string{"plain", "built"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "built", "kustomization.yml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := in.read(t.Context(), Install{Paths: []string{filepath.Join(dir, "plain"), filepath.Join(dir, "built")}})
	if err != nil || len(objects) != 4 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	if want := []string{" plain", "built " + "built -"}; !slices.Equal(from, want) {
		t.Errorf("read from %q, want %q", from, want)
	}
	if got := at[map[string]any](objects[0], "metadata", "annotations"); len(got) != 1 || got["mine"] != "1" {
		t.Errorf("annotations of the object: %v", got)
	}
	if _, err := in.read(t.Context(), Install{Paths: []string{filepath.Join(dir, "absent")}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a path that does not exist: %v", err)
	}
	if _, err := in.read(t.Context(), Install{Objects: []any{object{"kind": "A"}}}); err == nil || !strings.Contains(err.Error(), "set its apiVersion and kind") {
		t.Errorf("an object without apiVersion: %v", err)
	}
}
