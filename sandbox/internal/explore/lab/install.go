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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
)

// install applies the manifests at path. Objects of unknown kinds are left out with a warning:
// an operator may come with Certificates, for example, although cert-manager is not installed.
func (l *Lab) install(ctx context.Context, s *Sandbox, r *observe.Recorder, path string) error {
	flag := "-f"
	if _, err := os.Stat(filepath.Join(path, "kustomization.yaml")); err == nil {
		flag = "-k"
	}
	var err error
	for range 2 {
		err = s.Kubectl(ctx, "", "apply", "--server-side", flag, path)
		// Objects that come next may need the CustomResourceDefinitions, and so may objects that
		// were applied too early, for which the manifests are applied a second time.
		if err := established(ctx, r); err != nil {
			return err
		}
		if err == nil {
			return nil
		}
		if kinds, only := unknownKinds(err.Error()); !only || len(kinds) == 0 {
			return withAdvice(err)
		}
	}
	kinds, _ := unknownKinds(err.Error())
	l.Warnings = append(l.Warnings, fmt.Sprintf("what %s has of %s is left out: there is no such kind, install its CustomResourceDefinition", path, strings.Join(kinds, ", ")))
	return nil
}

// unknownKind matches the complaint of kubectl about an object whose kind is not served, and
// aside the lines that kubectl prints beside such a complaint.
var (
	unknownKind = regexp.MustCompile(`no matches for kind "([^"]+)" in version "([^"]+)"`)
	aside       = regexp.MustCompile(`^(ensure CRDs are installed first|.+ serverside-applied|exit status \d+|Warning: .*|)$`)
)

// unknownKinds returns the kinds, as VERSION KIND, that the output of kubectl reports as not
// served, and whether it reports no other error.
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

// unknownNamespace matches the error of kubectl about a missing namespace.
var unknownNamespace = regexp.MustCompile(`namespaces "([^"]+)" not found`)

// withAdvice adds advice to the error about a missing namespace, which is typical for a part of
// a kustomization, such as config/rbac. Other errors are returned as they are.
func withAdvice(err error) error {
	match := unknownNamespace.FindStringSubmatch(err.Error())
	if match == nil {
		return err
	}
	return fmt.Errorf("%w\nthere is no namespace %s: install what has it before this, or, in place of a part such as config/rbac, the whole, such as config/default, which makes and names it", err, match[1])
}

// establishing limits the wait for CustomResourceDefinitions.
const establishing = 30 * time.Second

// established waits until all CustomResourceDefinitions have the condition Established.
func established(ctx context.Context, r *observe.Recorder) error {
	definitions := r.Client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	over := time.After(establishing)
	for {
		list, err := definitions.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		waits := ""
		for i := range list.Items {
			v := observe.Version{Object: &list.Items[i]}
			if (observe.Names{}).Fields(&v)["status.conditions[Established].status"] != "True" {
				waits = v.Object.GetName()
			}
		}
		if waits == "" {
			return nil
		}
		select {
		case <-time.After(observe.Look):
		case <-over:
			return fmt.Errorf("the CustomResourceDefinition %s was not established in %s", waits, establishing)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
