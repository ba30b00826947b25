// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

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
)

// install applies manifests. Those of kinds that are not there, such as the Certificates of an
// operator whose certificates come from elsewhere, are left out with a warning.
func (l *lab) install(ctx context.Context, s *sandbox, r *recorder, path string) error {
	flag := "-f"
	if _, err := os.Stat(filepath.Join(path, "kustomization.yaml")); err == nil {
		flag = "-k"
	}
	var err error
	for range 2 {
		err = s.kubectl(ctx, "", "apply", "--server-side", flag, path)
		// What comes next may need it, and what was applied before its kind was there.
		if err := r.established(ctx); err != nil {
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
	l.warnings = append(l.warnings, fmt.Sprintf("what %s has of %s is left out: there is no such kind, install its CustomResourceDefinition", path, strings.Join(kinds, ", ")))
	return nil
}

// What kubectl says of an object whose kind is not there, and what it says besides.
var (
	unknownKind = regexp.MustCompile(`no matches for kind "([^"]+)" in version "([^"]+)"`)
	aside       = regexp.MustCompile(`^(ensure CRDs are installed first|.+ serverside-applied|exit status \d+|Warning: .*|)$`)
)

// unknownKinds returns the kinds, VERSION KIND, of which kubectl says that they are not there, and
// whether it complains of nothing else.
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

// unknownNamespace is how kubectl says that there is no such namespace.
var unknownNamespace = regexp.MustCompile(`namespaces "([^"]+)" not found`)

// withAdvice says what to do about objects in a namespace that nothing has made, as those of a part
// of a kustomization are, such as config/rbac.
func withAdvice(err error) error {
	match := unknownNamespace.FindStringSubmatch(err.Error())
	if match == nil {
		return err
	}
	return fmt.Errorf("%w\nthere is no namespace %s: install what has it before this, or, in place of a part such as config/rbac, the whole, such as config/default, which makes and names it", err, match[1])
}

// establishing is how long a CustomResourceDefinition may take.
const establishing = 30 * time.Second

// established waits until all CustomResourceDefinitions are served.
func (r *recorder) established(ctx context.Context) error {
	definitions := r.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	over := time.After(establishing)
	for {
		list, err := definitions.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		waits := ""
		for i := range list.Items {
			v := Version{Object: &list.Items[i]}
			if (anonymizer{}).fields(&v)["status.conditions[Established].status"] != "True" {
				waits = v.Object.GetName()
			}
		}
		if waits == "" {
			return nil
		}
		select {
		case <-time.After(look):
		case <-over:
			return fmt.Errorf("the CustomResourceDefinition %s was not established in %s", waits, establishing)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
