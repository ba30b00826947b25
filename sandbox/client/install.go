// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Install lists the manifests and objects to install in a new sandbox.
type Install struct {
	// Paths lists manifests to install: files, folders of files, or folders with a kustomization.
	// CustomResourceDefinitions and namespaces are installed first; other objects follow once the
	// API server serves their kinds.
	Paths []string
	// Objects lists additional objects to install, as values that encoding/json encodes as
	// Kubernetes objects with apiVersion and kind.
	Objects []any
	// LocalWebhooks redirects installed webhooks that refer to a Service, including conversion
	// webhooks, to a server in this process; see [Sandbox.Webhooks].
	LocalWebhooks bool
}

// servedWithin is the maximum time to wait until the API server serves an installed kind.
const servedWithin = time.Minute

// object is a Kubernetes object, decoded from JSON.
type object map[string]any

// at returns the field of an object at the given path as a T, or the zero value if the field is
// missing or has another type.
func at[T any](o map[string]any, path ...string) T {
	var value any = o
	for _, field := range path {
		fields, _ := value.(map[string]any)
		value = fields[field]
	}
	found, _ := value.(T)
	return found
}

func (o object) kind() string { return at[string](o, "kind") }

// installer applies objects with kubectl.
type installer struct {
	// kubectl runs kubectl with the given standard input, and returns its standard output.
	kubectl func(ctx context.Context, stdin string, args ...string) (string, error)
}

// install applies the given objects: first CustomResourceDefinitions and namespaces, then the other
// objects. In between, it waits until the API server serves the kinds that the
// CustomResourceDefinitions define.
func (in installer) install(ctx context.Context, objects []object) error {
	first := func(o object) bool { return o.kind() == "CustomResourceDefinition" || o.kind() == "Namespace" }
	if err := in.apply(ctx, slices.DeleteFunc(slices.Clone(objects), func(o object) bool { return !first(o) })); err != nil {
		return err
	}
	for _, o := range objects {
		if o.kind() == "CustomResourceDefinition" {
			if err := in.awaitServed(ctx, o); err != nil {
				return err
			}
		}
	}
	// kubectl finds kinds in the API server's discovery document, which may lag behind the kinds that
	// the API server serves.
	rest := slices.DeleteFunc(slices.Clone(objects), first)
	var failed error
	if err := Wait(ctx, servedWithin, "kubectl finds the installed kinds", func() error {
		if failed = in.apply(ctx, rest); failed != nil && slices.ContainsFunc(objects, func(o object) bool { return isUnknown(o, failed) }) {
			return failed
		}
		return nil
	}); err != nil {
		return err
	}
	return failed
}

// isUnknown reports whether kubectl failed because it does not find the kind that the
// CustomResourceDefinition defines.
func isUnknown(definition object, failed error) bool {
	kind, group := at[string](definition, "spec", "names", "kind"), at[string](definition, "spec", "group")
	return definition.kind() == "CustomResourceDefinition" && strings.Contains(failed.Error(), fmt.Sprintf(`no matches for kind %q in version "%s/`, kind, group))
}

// apply runs "kubectl apply" for the given objects, unless there are none.
func (in installer) apply(ctx context.Context, objects []object) error {
	if len(objects) == 0 {
		return nil
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		return err
	}
	_, err = in.kubectl(ctx, string(list), "apply", "--server-side", "--force-conflicts", "--filename=-")
	return err
}

// awaitServed waits until the API server serves all served versions of a CustomResourceDefinition.
func (in installer) awaitServed(ctx context.Context, definition object) error {
	name := at[string](definition, "metadata", "name")
	if _, err := in.kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout="+servedWithin.String(), "crd/"+name); err != nil {
		return err
	}
	group, plural := at[string](definition, "spec", "group"), at[string](definition, "spec", "names", "plural")
	for _, v := range at[[]any](definition, "spec", "versions") {
		version, _ := v.(map[string]any)
		if !at[bool](version, "served") {
			continue
		}
		path := fmt.Sprintf("/apis/%s/%s", group, at[string](version, "name"))
		if err := Wait(ctx, servedWithin, "the API server serves "+name+" at "+path, func() error {
			resources, err := in.kubectl(ctx, "", "get", "--raw", path)
			if err == nil && !strings.Contains(resources, fmt.Sprintf("%q:%q", "name", plural)) {
				err = errors.New("it is not in the list of resources")
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// read returns the objects that an Install lists, including the objects in files.
func (in installer) read(ctx context.Context, i Install) ([]object, error) {
	var all []object
	for _, path := range i.Paths {
		objects, err := in.readPath(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("install %s: %w", path, err)
		}
		all = append(all, objects...)
	}
	for _, o := range i.Objects {
		text, err := json.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("install a %T: %w", o, err)
		}
		var read object
		if err := json.Unmarshal(text, &read); err != nil {
			return nil, fmt.Errorf("install a %T: %w", o, err)
		}
		if read.kind() == "" || at[string](read, "apiVersion") == "" {
			return nil, fmt.Errorf("install a %T: set its apiVersion and kind", o)
		}
		all = append(all, read)
	}
	return all, nil
}

// asRead is an annotation without a meaning. A manifest is parsed with the command "kubectl
// annotate --local", which adds this annotation. It prints objects of any kind as JSON without an
// API server.
const asRead = "sandbox.tidekeeper.dev/as-read"

// readPath returns the objects in a file or folder.
func (in installer) readPath(ctx context.Context, path string) ([]object, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	from, stdin := path, ""
	if slices.ContainsFunc([]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}, func(name string) bool {
		_, err := os.Stat(filepath.Join(path, name))
		return err == nil
	}) {
		built, err := in.kubectl(ctx, "", "kustomize", path)
		if err != nil {
			return nil, err
		}
		from, stdin = "-", built
	}
	text, err := in.kubectl(ctx, stdin, "annotate", "--local", "--output=json", "--filename="+from, asRead+"=yes")
	if err != nil {
		return nil, err
	}
	var all []object
	for decoder := json.NewDecoder(strings.NewReader(text)); ; {
		var o object
		switch err := decoder.Decode(&o); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		delete(at[map[string]any](o, "metadata", "annotations"), asRead)
		all = append(all, o)
	}
}
