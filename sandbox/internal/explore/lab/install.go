// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
)

// install applies the manifests at the given path. It skips objects of unknown kinds with a
// warning. For example, an operator's manifests may contain Certificates although cert-manager is
// not installed.
func (l *Lab) install(ctx context.Context, s *Sandbox, r *observe.Recorder, path string) error {
	flag := "-f"
	if IsKustomization(path) {
		flag = "-k"
	}
	for began := time.Now(); ; {
		err := s.Kubectl(ctx, "", "apply", "--server-side", flag, path)
		// Wait for the CustomResourceDefinitions that the next manifests may need. Then apply the
		// manifests again, because some of their objects may have been applied before kubectl found
		// the kind of their CustomResourceDefinition.
		defined, failed := established(ctx, r)
		switch {
		case failed != nil:
			return failed
		case err == nil:
			return nil
		}
		kinds, only := unknownKinds(err.Error())
		switch {
		case !only || len(kinds) == 0:
			return withAdvice(err)
		case slices.ContainsFunc(kinds, func(kind string) bool { return defined[kind] }) && time.Since(began) < establishing:
			continue
		}
		l.Warnings = append(l.Warnings, fmt.Sprintf("what %s has of %s is left out: there is no such kind, install its CustomResourceDefinition", path, strings.Join(kinds, ", ")))
		return nil
	}
}

// awaitInstalled waits until nothing has changed for some time. Installed pods run before the first run
// begins, also on a busy machine, unless they never will.
func awaitInstalled(ctx context.Context, r *observe.Recorder) error {
	for {
		quiet := time.Since(r.Habits.Since())
		if quiet >= 10*time.Second || quiet >= 2*time.Second && !r.Unfinished() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(observe.Look):
		}
	}
}

// IsKustomization reports whether a path to install is a directory that is built as a kustomization.
func IsKustomization(path string) bool {
	_, err := os.Stat(filepath.Join(path, "kustomization.yaml"))
	return err == nil
}

// unknownKind matches the line of kubectl's output that reports an object of an unknown kind. aside
// matches the other lines that kubectl prints along with this error.
var (
	unknownKind = regexp.MustCompile(`no matches for kind "([^"]+)" in version "([^"]+)"`)
	aside       = regexp.MustCompile(`^(ensure CRDs are installed first|.+ serverside-applied|exit status \d+|Warning: .*|)$`)
)

// unknownKinds returns the unknown kinds in kubectl's output, as VERSION KIND. `only` is true if
// the output contains no other error.
func unknownKinds(complaint string) (kinds []string, only bool) {
	only = true
	for line := range strings.Lines(strings.Replace(complaint, ": ", "\n", 1)) {
		line = strings.TrimSpace(line)
		if match := unknownKind.FindStringSubmatch(line); match != nil {
			kinds = append(kinds, match[2]+" "+match[1])
		} else if !aside.MatchString(line) {
			only = false
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds), only
}

// unknownNamespace matches kubectl's error for a missing namespace.
var unknownNamespace = regexp.MustCompile(`namespaces "([^"]+)" not found`)

// withAdvice adds advice to an error about a missing namespace, which typically occurs if only a
// part of a kustomization is installed, such as config/rbac. It returns other errors unchanged.
func withAdvice(err error) error {
	match := unknownNamespace.FindStringSubmatch(err.Error())
	if match == nil {
		return err
	}
	return fmt.Errorf("%w\nthere is no namespace %s: install what has it before this, or, in place of a part such as config/rbac, the whole, such as config/default, which makes and names it", err, match[1])
}

// establishing is the timeout for CustomResourceDefinitions to become established.
const establishing = 2 * time.Minute

// established waits until all CustomResourceDefinitions have the Established condition. It returns
// the set of the kinds that they define, as VERSION KIND.
func established(ctx context.Context, r *observe.Recorder) (defined map[string]bool, _ error) {
	definitions := r.Client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	over := time.After(establishing)
	for {
		list, err := definitions.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		waits := ""
		for i := range list.Items {
			v := observe.Version{Object: &list.Items[i]}
			if (observe.Names{}).Fields(&v)["status.conditions[Established].status"] != "True" {
				waits = v.Object.GetName()
			}
		}
		if waits == "" {
			return kindsOf(list.Items), nil
		}
		select {
		case <-time.After(observe.Look):
		case <-over:
			return nil, fmt.Errorf("the CustomResourceDefinition %s was not established in %s", waits, establishing)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// kindsOf returns the set of the served kinds that CustomResourceDefinitions define, as VERSION KIND.
func kindsOf(definitions []unstructured.Unstructured) map[string]bool {
	all := map[string]bool{}
	for i := range definitions {
		group, _, _ := unstructured.NestedString(definitions[i].Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(definitions[i].Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(definitions[i].Object, "spec", "versions")
		for _, v := range versions {
			if version, is := v.(map[string]any); is && version["served"] == true {
				all[fmt.Sprintf("%s/%s %s", group, version["name"], kind)] = true
			}
		}
	}
	return all
}
