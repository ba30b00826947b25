// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// A run says nothing in which someone has a part that it did not give one.
func TestStrangers(t *testing.T) {
	by := func(name string, managers ...string) Version {
		o := &unstructured.Unstructured{}
		o.SetNamespace("shop")
		o.SetName(name)
		var fields []metav1.ManagedFieldsEntry
		for _, manager := range managers {
			fields = append(fields, metav1.ManagedFieldsEntry{Manager: manager})
		}
		o.SetManagedFields(fields)
		return Version{Resource: "configmaps", Object: o}
	}
	rule := func(name string) []fault.RuleStatus {
		return []fault.RuleStatus{{Rule: fault.Rule{Name: faultRule}}, {Rule: fault.Rule{Name: name}}}
	}
	undisturbed := &Outcome{Versions: []Version{by("a", "operator"), by("b", "kubectl-create")}}
	base := &Baseline{Managers: map[string]bool{}}
	for _, manager := range undisturbed.managers() {
		base.Managers[manager] = true
	}
	there := by("c", "curl")
	there.Initial = true
	written := Request{Verb: "update", Resource: "configmaps/status", Namespace: "shop", Name: "a"}
	for _, tc := range []struct {
		name  string
		rules []fault.RuleStatus
		o     Outcome
		says  string
	}{
		{"the operator, users and the kit", rule(againRule), Outcome{Versions: []Version{by("a", "operator", "kube-controller-manager"), by("b", "kubectl-create", "sandbox", filepath.Base(os.Args[0])), there}}, ""},
		{"the operator, under another name", nil, Outcome{Requests: []Request{written}, Versions: []Version{by("a", "operator", "operator-2")}}, ""},
		{"another client", nil, Outcome{Requests: []Request{written}, Versions: []Version{by("a", "operator"), by("b", "kubectl-create", "curl")}}, "another client, curl, has written configmaps shop/b, and has no part in this workload"},
		{"another rule", rule("mine"), Outcome{}, `the proxy has a rule that this run did not add, "mine"`},
	} {
		err := strangers(tc.rules, &tc.o, base)
		if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.says)
		}
	}
}
