// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

func TestFreezesOf(t *testing.T) {
	now := time.Date(2026, 12, 23, 12, 0, 0, 0, time.UTC)
	freeze := func(name string, created, from, until time.Duration, selector *tidekeeperv1.NamespaceSelector) *tidekeeperv1.Freeze {
		f := &tidekeeperv1.Freeze{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Time{Time: now.Add(created)}}}
		f.Spec = tidekeeperv1.FreezeSpec{Until: metav1.Time{Time: now.Add(until)}, Reason: "reason", NamespaceSelector: selector}
		if from != 0 {
			f.Spec.From = &metav1.Time{Time: now.Add(from)}
		}
		return f
	}
	in := func(key string, operator metav1.LabelSelectorOperator, values ...tidekeeperv1.LabelValue) *tidekeeperv1.NamespaceSelector {
		return &tidekeeperv1.NamespaceSelector{MatchExpressions: []tidekeeperv1.NamespaceSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	got := [][]any{}
	for _, f := range FreezesOf([]*tidekeeperv1.Freeze{
		freeze("coming", -2*time.Hour, time.Hour, 2*time.Hour, nil),
		freeze("ended", -2*time.Hour, 0, 0, nil),
		freeze("named", -time.Hour, 0, time.Hour, in("kubernetes.io/metadata.name", "In", "shop", "blog")),
		freeze("others", -time.Minute, 0, time.Hour, in("kubernetes.io/metadata.name", "NotIn", "shop")),
		freeze("labelled", -time.Second, 0, time.Hour, &tidekeeperv1.NamespaceSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{"team": "a"}}),
	}, now) {
		got = append(got, []any{f.Name, f.InForce, f.Where})
	}
	want := [][]any{
		{"named", true, "shop, blog"},
		{"others", true, "namespaces with kubernetes.io/metadata.name notin (shop)"},
		{"labelled", true, "namespaces with team=a"},
		{"coming", false, "all namespaces"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
