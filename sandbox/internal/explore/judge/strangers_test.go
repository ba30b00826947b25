// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// TestStrangers checks that other clients' proxy rules and writes are detected.
func TestStrangers(t *testing.T) {
	by := func(name string, managers ...string) observe.Version {
		o := &unstructured.Unstructured{}
		o.SetNamespace("shop")
		o.SetName(name)
		var fields []metav1.ManagedFieldsEntry
		for _, manager := range managers {
			fields = append(fields, metav1.ManagedFieldsEntry{Manager: manager})
		}
		o.SetManagedFields(fields)
		return observe.Version{Resource: "configmaps", Object: o}
	}
	rule := func(name string) []fault.RuleStatus {
		return []fault.RuleStatus{{Rule: fault.Rule{Name: faults.FaultRule}}, {Rule: fault.Rule{Name: name}}}
	}
	undisturbed := &observe.Record{Versions: []observe.Version{by("a", "operator"), by("b", "kubectl-create")}}
	base := &baseline.Baseline{Managers: map[string]bool{}}
	for _, manager := range undisturbed.Managers() {
		base.Managers[manager] = true
	}
	there := by("c", "curl")
	there.Initial = true
	bare := by("d")
	bare.Initial = true
	written := observe.Request{Verb: "update", Resource: "configmaps/status", Namespace: "shop", Name: "a"}
	if base.Managers[observe.Unnamed] {
		t.Error("a writer without a name has a part in the baseline")
	}
	if managers := (&observe.Record{Versions: []observe.Version{by("c"), bare}}).Managers(); len(managers) != 1 || managers[0] != observe.Unnamed {
		t.Errorf("the managers of an object written without managedFields are %q", managers)
	}
	if managers := (&observe.Record{Versions: []observe.Version{bare}}).Managers(); len(managers) != 0 {
		t.Errorf("the managers of an object without managedFields that was there before are %q", managers)
	}
	for _, tc := range []struct {
		name  string
		rules []fault.RuleStatus
		o     observe.Record
		says  string
	}{
		{"the operator, users and the kit", rule(faults.AgainRule), observe.Record{Versions: []observe.Version{by("a", "operator", "kube-controller-manager"), by("b", "kubectl-create", "sandbox", filepath.Base(os.Args[0])), there}}, ""},
		{"the operator, under another name", nil, observe.Record{Requests: []observe.Request{written}, Versions: []observe.Version{by("a", "operator", "operator-2")}}, ""},
		{"another client", nil, observe.Record{Requests: []observe.Request{written}, Versions: []observe.Version{by("a", "operator"), by("b", "kubectl-create", "curl")}}, "another client, curl, has written configmaps shop/b, and has no part in this workload"},
		{"another client that removes the managedFields", nil, observe.Record{Versions: []observe.Version{by("c")}}, "another client, which left no managedFields, has written configmaps shop/c"},
		{"the operator, which removes them", nil, observe.Record{Requests: []observe.Request{written}, Versions: []observe.Version{by("a")}}, ""},
		{"an object without them that was there before", nil, observe.Record{Versions: []observe.Version{bare}}, ""},
		{"another rule", rule("mine"), observe.Record{}, `the proxy has a rule that this run did not add, "mine"`},
	} {
		err := Strangers(tc.rules, &tc.o, base.Managers)
		if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.says)
		}
	}
}
