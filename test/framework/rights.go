// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sandbox "tidekeeper.dev/tidekeeper/sandbox/client"
)

// Right is the RBAC permission for a verb on a resource. An empty Namespace means all namespaces;
// an empty Name means any name.
type Right struct{ Verb, Group, Resource, Namespace, Name string }

func (r Right) String() string {
	s := r.Verb + " " + r.Resource
	if r.Group != "" {
		s += "." + r.Group
	}
	if r.Name != "" {
		s += " " + r.Name
	}
	if r.Namespace != "" {
		s += " in " + r.Namespace
	}
	return s
}

// allows reports whether the right covers the given request.
func (r Right) allows(q Request) bool {
	resource := q.Resource
	if q.Subresource != "" {
		resource += "/" + q.Subresource
	}
	return r.Verb == q.Verb && r.Group == q.Group && r.Resource == resource &&
		(r.Namespace == "" || r.Namespace == q.Namespace) && (r.Name == "" || r.Name == q.Name)
}

// CompareRights compares a client's rights with its requests and returns a line per problem: a
// denied request, a right with a wildcard, or a right that was never used. The rights in `inside`
// are exempt because the API server checks them while it serves another request.
func CompareRights(granted []Right, asked []Request, inside []Right) []string {
	problems := map[string]bool{}
	for _, q := range asked {
		if q.Denied {
			problems[fmt.Sprintf("denied: %s, group %q, namespace %q", q, q.Group, q.Namespace)] = true
		}
	}
	for _, r := range granted {
		switch {
		case r.Verb == "*" || r.Group == "*" || strings.Contains(r.Resource, "*"):
			problems["wildcard: "+r.String()] = true
		case slices.Contains(inside, r):
		case !slices.ContainsFunc(asked, r.allows):
			problems["granted and never used: "+r.String()] = true
		}
	}
	for _, r := range inside {
		if !slices.Contains(granted, r) {
			problems["said to be needed and not granted: "+r.String()] = true
		}
	}
	lines := make([]string, 0, len(problems))
	for line := range problems {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// ManagerRights returns the rights that are bound to the manager's service account by name. Rights
// that Kubernetes grants to every service account are left out.
func (c *Cluster) ManagerRights(ctx context.Context) ([]Right, error) {
	var rights []Right
	mine := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.ServiceAccountKind && s.Name == ManagerAccount && s.Namespace == ManagerNamespace
		})
	}
	everywhere := &rbacv1.ClusterRoleBindingList{}
	if err := c.List(ctx, everywhere); err != nil {
		return nil, err
	}
	for _, binding := range everywhere.Items {
		if !mine(binding.Subjects) {
			continue
		}
		rules, err := c.rules(ctx, "", binding.RoleRef)
		if err != nil {
			return nil, err
		}
		rights = append(rights, rightsOf(rules, "")...)
	}
	somewhere := &rbacv1.RoleBindingList{}
	if err := c.List(ctx, somewhere); err != nil {
		return nil, err
	}
	for _, binding := range somewhere.Items {
		if !mine(binding.Subjects) {
			continue
		}
		rules, err := c.rules(ctx, binding.Namespace, binding.RoleRef)
		if err != nil {
			return nil, err
		}
		rights = append(rights, rightsOf(rules, binding.Namespace)...)
	}
	return rights, nil
}

// Allowed reports whether the API server's authorizer grants a right to a user. It may lag behind the
// roles and their bindings.
func (c *Cluster) Allowed(ctx context.Context, user string, r Right) (bool, error) {
	resource, subresource, _ := strings.Cut(r.Resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: r.Verb, Group: r.Group, Resource: resource, Subresource: subresource, Namespace: r.Namespace, Name: r.Name,
		},
	}}
	err := c.Create(ctx, review)
	return review.Status.Allowed, err
}

// EventuallyAllowed waits until the API server's authorizer grants a right to a user, or until it
// does not, if `want` is false.
func (c *Cluster) EventuallyAllowed(t testing.TB, user string, r Right, want bool) {
	t.Helper()
	Eventually(t, fmt.Sprintf("it is %t that %s may %s", want, user, r), func() error {
		if allowed, err := c.Allowed(t.Context(), user, r); err != nil || allowed != want {
			return fmt.Errorf("it is %t (%w)", allowed, err)
		}
		return nil
	})
}

// awaitManagerRights waits until the manager's rights to watch are in force, which a manager that
// starts needs. The rights of a role come into force together.
func (c *Cluster) awaitManagerRights() error {
	ctx := context.Background()
	rights, err := c.ManagerRights(ctx)
	if err != nil {
		return err
	}
	for _, r := range rights {
		if r.Verb != "watch" && r.Resource != "leases" {
			continue
		}
		err := sandbox.Wait(ctx, Patience, "the manager may "+r.String(), func() error {
			allowed, err := c.Allowed(ctx, ManagerUser, r)
			if err == nil && !allowed {
				err = errors.New("it may not")
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// AwaitManagerRights waits until the rights that are now bound to the manager's service account are
// in force.
func (c *Cluster) AwaitManagerRights(t testing.TB) {
	t.Helper()
	if err := c.awaitManagerRights(); err != nil {
		t.Fatal(err)
	}
}

// rules returns the rules of the role that a binding references.
func (c *Cluster) rules(ctx context.Context, namespace string, ref rbacv1.RoleRef) ([]rbacv1.PolicyRule, error) {
	if ref.Kind == "Role" {
		role := &rbacv1.Role{}
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, role)
		return role.Rules, err
	}
	role := &rbacv1.ClusterRole{}
	err := c.Get(ctx, client.ObjectKey{Name: ref.Name}, role)
	return role.Rules, err
}

func rightsOf(rules []rbacv1.PolicyRule, namespace string) []Right {
	var rights []Right
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						rights = append(rights, Right{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name})
					}
				}
			}
		}
		for _, url := range rule.NonResourceURLs {
			rights = append(rights, Right{Verb: strings.Join(rule.Verbs, ","), Resource: url})
		}
	}
	return rights
}

// ManagerRequests returns the managers' requests since the sandbox was started, which must have
// been with --audit.
func (c *Cluster) ManagerRequests() ([]Request, error) {
	audit := &Audit{log: c.auditLog()}
	defer audit.log.close()
	events, err := audit.events()
	if err != nil {
		return nil, err
	}
	var requests []Request
	for _, e := range events {
		if e.User == ManagerUser {
			requests = append(requests, e.Request)
		}
	}
	return requests, nil
}

// usedRights holds the rights of a suite's managers, and the requests that the managers have sent.
type usedRights struct {
	Granted []Right
	Asked   []Request
}

func (c *Cluster) usedRights(ctx context.Context) (used usedRights, err error) {
	if used.Granted, err = c.ManagerRights(ctx); err != nil {
		return used, err
	}
	used.Asked, err = c.ManagerRequests()
	return used, err
}

// check compares the managers' requests with their rights; see [CompareRights].
func (u usedRights) check(inside []Right) error {
	if problems := CompareRights(u.Granted, u.Asked, inside); len(problems) > 0 {
		return fmt.Errorf("the rights of the manager, compared with its %d requests:\n%s",
			len(u.Asked), strings.Join(problems, "\n"))
	}
	return nil
}
