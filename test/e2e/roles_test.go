// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// rolesHeading is the heading of the section in SECURITY.md that contains the table of roles.
const rolesHeading = "## Which role may what"

// verbsOf maps the words in the table's cells to verbs.
var verbsOf = map[string][]string{
	"–":          nil,
	"get":        {"get"},
	"read":       {"get", "list", "watch"},
	"read, edit": {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
}

// TestRolesAreAsThePageSays checks that the table in SECURITY.md matches the rights that the API
// server reports for a user who has only the role in question, cluster-wide and in a single
// namespace.
func TestRolesAreAsThePageSays(t *testing.T) {
	header, rows := rolesTable(t)
	for _, role := range []string{"view", "edit", "admin", "cluster-admin", "tidekeeper-freeze-view", "tidekeeper-freeze-edit", "tidekeeper-nodemaintenance-view", "tidekeeper-nodemaintenance-edit", "tidekeeper-nodepool-view", "tidekeeper-nodepool-edit", "tidekeeper-scheduledrestart-view", "tidekeeper-scheduledrestart-edit"} {
		if rows[role] == nil {
			t.Errorf("the page does not have the role %s", role)
		}
	}
	for role, cells := range rows {
		t.Run(role, func(t *testing.T) {
			everywhere, here := "roles-everywhere-"+role, "roles-here-"+role
			for _, o := range slices.Concat(bindInCluster(everywhere, role), bindRole(here, role)) {
				cluster.Apply(t, o)
			}
			framework.Eventually(t, "the rights are as the page says", func() error {
				want, got := map[string]string{}, map[string]string{}
				for i, resource := range header {
					verbs, known := verbsOf[cells[i]]
					if !known {
						return fmt.Errorf("the page says %q, which has no meaning", cells[i])
					}
					want[resource] = strings.Join(verbs, " ")
					got[resource] = strings.Join(allowed(t, everywhere, resource), " ")
					// A RoleBinding grants rights only in its namespace.
					if strings.HasPrefix(resource, "scheduledrestarts") {
						want["here: "+resource] = want[resource]
					} else {
						want["here: "+resource] = ""
					}
					got["here: "+resource] = strings.Join(allowed(t, here, resource), " ")
				}
				return diff(want, got)
			})
		})
	}
}

// allowed returns the verbs that a user may use on a resource. For a namespaced resource, these are
// the verbs in the namespace default.
func allowed(t *testing.T, user, resource string) []string {
	t.Helper()
	resource, sub, _ := strings.Cut(resource, "/")
	var verbs []string
	for _, verb := range verbsOf["read, edit"] {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, Groups: []string{"system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: "tidekeeper.dev", Version: "v1", Resource: resource, Subresource: sub},
		}}
		if resource == "scheduledrestarts" {
			review.Spec.ResourceAttributes.Namespace = metav1.NamespaceDefault
		}
		if err := cluster.Create(t.Context(), review, &client.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

// rolesTable returns the resources in the table in SECURITY.md, and the cells of each role.
func rolesTable(t *testing.T) (resources []string, rows map[string][]string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(framework.Root(), "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), rolesHeading+"\n")
	if !found {
		t.Fatalf("SECURITY.md has no %q", rolesHeading)
	}
	rows = map[string][]string{}
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), "`", ""), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case strings.HasPrefix(cells[0], "---"):
		case resources == nil:
			resources = cells[1:]
		case len(cells) != len(resources)+1:
			t.Fatalf("a row of another length: %s", line)
		default:
			rows[cells[0]] = cells[1:]
		}
	}
	return resources, rows
}
