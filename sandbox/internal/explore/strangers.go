// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// ownRules are those that a run adds to its proxy.
var ownRules = []string{faultRule, freezeRule, expireRule, againRule}

// strangers is an error if someone has a part in a run that it did not give one: by a rule of the
// proxy, or by writing to the sandbox. Then it says nothing about the operator.
func strangers(rules []fault.RuleStatus, o *Outcome, b *Baseline) error {
	for _, rule := range rules {
		if !slices.Contains(ownRules, rule.Name) {
			return fmt.Errorf("the proxy has a rule that this run did not add, %q: nothing else may steer it while this plays", rule.Name)
		}
	}
	if b == nil {
		return nil
	}
	// The kit itself writes by the name of this program.
	kit, _, _ := strings.Cut(rest.DefaultKubernetesUserAgent(), "/")
	written := map[string]bool{}
	for i := range o.Requests {
		if r := &o.Requests[i]; slices.Contains(writeVerbs, r.Verb) {
			written[nameKey(r.Resource, r.Namespace, r.Name)] = true
		}
	}
	for i := range o.Versions {
		v := &o.Versions[i]
		// What is made with a generated name has none in its request.
		if v.Initial || written[v.key()] || written[nameKey(v.Resource, v.Object.GetNamespace(), "")] {
			continue
		}
		for _, by := range v.Object.GetManagedFields() {
			if by.Manager != kit && !b.Managers[by.Manager] && !slices.Contains(controlPlane, by.Manager) {
				return fmt.Errorf("another client, %s, has written %s, and has no part in this workload: nothing else may write to a sandbox while this plays", by.Manager, v.key())
			}
		}
	}
	return nil
}

// Strangers is an error if someone has a part in what has happened since the mark that was given none:
// known are those that were learnt.
func (s *Session) Strangers(known map[string]bool) error {
	// What the operator has written stays its own, also if another client writes to it later.
	o := &Outcome{Requests: s.run.log.since(0)}
	o.Versions, _ = s.run.recorder.all()
	return strangers(s.run.injector.rules.list(), o, &Baseline{Managers: known})
}

// Managers returns by whom the objects were written that there are, and were since the mark.
func (s *Session) Managers() map[string]bool {
	o := &Outcome{}
	o.Versions, _ = s.run.recorder.all()
	all := map[string]bool{}
	for _, manager := range o.managers() {
		all[manager] = true
	}
	return all
}

// managers returns by whom the objects of a run were written, by their managedFields.
func (o *Outcome) managers() []string {
	var all []string
	for i := range o.Versions {
		for _, by := range o.Versions[i].Object.GetManagedFields() {
			if !slices.Contains(all, by.Manager) {
				all = append(all, by.Manager)
			}
		}
	}
	return all
}
