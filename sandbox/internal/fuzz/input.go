// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz/edits"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// ReadSample reads the file named by --object. The last object in the file is the sample to edit.
// `others` is a manifest of the preceding objects, which the sample may need, or "".
func ReadSample(file string) (sample map[string]any, others string, err error) {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return nil, "", fmt.Errorf("--object: %w", err)
	}
	if sample, others, err = parseSample(text); err != nil {
		return nil, "", fmt.Errorf("--object %s: %w", file, err)
	}
	return sample, others, nil
}

func parseSample(text []byte) (sample map[string]any, others string, err error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var documents []string
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, "", err
		}
		data, err := utilyaml.ToJSON(document)
		if err != nil {
			return nil, "", fmt.Errorf("it is not YAML: %w", err)
		}
		var object any
		if err := utiljson.Unmarshal(data, &object); err != nil {
			return nil, "", fmt.Errorf("it is not YAML: %w", err)
		}
		if object == nil {
			continue // A YAML document that contains only comments is no object.
		}
		fields, is := object.(map[string]any)
		if !is || textOf(fields, "kind") == "" || textOf(fields, "apiVersion") == "" {
			return nil, "", errors.New("it is not a manifest: apiVersion and kind are missing")
		}
		sample = fields
		documents = append(documents, string(document))
	}
	if sample == nil {
		return nil, "", errors.New("it has no object")
	}
	metadata, _ := sample["metadata"].(map[string]any)
	if textOf(metadata, "name") == "" {
		return nil, "", errors.New("the object that is to be edited has no metadata.name")
	}
	return sample, strings.Join(documents[:len(documents)-1], "\n---\n"), nil
}

func textOf(fields map[string]any, name string) string {
	text, _ := fields[name].(string)
	return text
}

// target describes the kind of the edited object.
type target struct {
	resource   schema.GroupVersionResource
	namespaced bool
	schema     *edits.Schema
}

// object returns an object with the given content, but no status. A namespaced object without a
// namespace is put into the namespace default.
func (t *target) object(content map[string]any) *unstructured.Unstructured {
	o := (&unstructured.Unstructured{Object: content}).DeepCopy()
	unstructured.RemoveNestedField(o.Object, "status")
	if !t.namespaced {
		o.SetNamespace("")
	} else if o.GetNamespace() == "" {
		o.SetNamespace(metav1.NamespaceDefault)
	}
	return o
}

// written returns the given content, as written by users, in the form that Mask.Compare takes.
// `isNew` is set if the edited object was just created.
func (t *target) written(content map[string]any, isNew bool) written {
	o := t.object(content)
	return written{
		object: t.resource.GroupResource().String() + " " + o.GetNamespace() + "/" + o.GetName(),
		fields: state.Flatten(o.Object, func(path string) bool { return path == "metadata" }), isNew: isNew,
	}
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// find returns the kind of the sample (the custom resource to edit), as described by a
// CustomResourceDefinition in the cluster.
func find(ctx context.Context, client dynamic.Interface, sample map[string]any) (*target, error) {
	list, err := client.Resource(definitions).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var crds []apiextensionsv1.CustomResourceDefinition
	for i := range list.Items {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &crd); err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
	return choose(crds, (&unstructured.Unstructured{Object: sample}).GroupVersionKind())
}

// choose returns the target for a kind described by one of the CustomResourceDefinitions.
func choose(crds []apiextensionsv1.CustomResourceDefinition, kind schema.GroupVersionKind) (*target, error) {
	var known []string
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			known = append(known, fmt.Sprintf("%s of %s/%s", crd.Spec.Names.Kind, crd.Spec.Group, version.Name))
			if crd.Spec.Group != kind.Group || crd.Spec.Names.Kind != kind.Kind || version.Name != kind.Version {
				continue
			}
			t := &target{resource: kind.GroupVersion().WithResource(crd.Spec.Names.Plural), namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped}
			if version.Schema != nil {
				t.schema = version.Schema.OpenAPIV3Schema
			}
			if !describes(t.schema) {
				return nil, fmt.Errorf("the CustomResourceDefinition %s has no schema for the version %s: no property is described, so there is nothing to edit", crd.Name, version.Name)
			}
			if !version.Served {
				return nil, fmt.Errorf("the CustomResourceDefinition %s does not serve the version %s", crd.Name, version.Name)
			}
			return t, nil
		}
	}
	slices.Sort(known)
	have := "there is none"
	if len(known) > 0 {
		have = "there are " + strings.Join(known, ", ")
	}
	return nil, fmt.Errorf("--object: no CustomResourceDefinition that --install installs is that of %s of %s: %s", kind.Kind, kind.GroupVersion(), have)
}

// describes reports whether a schema contains properties that users may set.
func describes(s *edits.Schema) bool {
	if s == nil {
		return false
	}
	for name := range s.Properties {
		if !slices.Contains(common, name) {
			return true
		}
	}
	return false
}

// common lists the top-level fields that are never edited: the fields that all objects have, and
// the status.
var common = []string{"apiVersion", "kind", "metadata", "status"}
