// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/inject"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// Strangers returns an error if another client has interfered with a run by adding a proxy rule or
// by writing to the sandbox. Such a run proves nothing about the operator. `managers` is the set of
// known field managers. If `managers` is nil, writers are not checked.
func Strangers(rules []fault.RuleStatus, o *observe.Record, managers map[string]bool) error {
	for _, rule := range rules {
		if !slices.Contains(inject.OwnRules, rule.Name) {
			return fmt.Errorf("the proxy has a rule that this run did not add, %q: no other client may change the rules of the proxy during a run", rule.Name)
		}
	}
	if managers == nil {
		return nil
	}
	// This process (explore or fuzz) writes with the default field manager, which is the name of
	// its executable.
	kit, _, _ := strings.Cut(rest.DefaultKubernetesUserAgent(), "/")
	written := map[string]bool{}
	for i := range o.Requests {
		if r := &o.Requests[i]; slices.Contains(observe.WriteVerbs, r.Verb) {
			written[observe.NameKey(r.Resource, r.Namespace, r.Name)] = true
		}
	}
	for i := range o.Versions {
		v := &o.Versions[i]
		// Skip objects that existed before the run, or that the operator has written. A create
		// request with generateName has no name, so its key has none either.
		if v.Initial || written[v.Key()] || written[observe.NameKey(v.Resource, v.Object.GetNamespace(), "")] {
			continue
		}
		for _, manager := range v.Managers() {
			if manager == kit || managers[manager] || slices.Contains(observe.ControlPlane, manager) {
				continue
			}
			return fmt.Errorf("another client, %s, has written %s, and has no part in this workload: no other client may write to the sandbox during a run",
				cmp.Or(manager, "which left no managedFields"), v.Key())
		}
	}
	return nil
}
