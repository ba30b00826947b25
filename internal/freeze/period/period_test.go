// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package period_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
)

var noon = time.Date(2026, time.December, 23, 12, 0, 0, 0, time.UTC)

// freeze returns a Freeze that was created at noon and ends the given number of hours later.
func freeze(name string, hours int, changes ...func(*tidekeeperv1.FreezeSpec)) tidekeeperv1.Freeze {
	f := tidekeeperv1.Freeze{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Time{Time: noon}},
		Spec:       tidekeeperv1.FreezeSpec{Until: metav1.Time{Time: noon.Add(time.Duration(hours) * time.Hour)}, Reason: "r"},
	}
	for _, change := range changes {
		change(&f.Spec)
	}
	return f
}

func from(hours int) func(*tidekeeperv1.FreezeSpec) {
	return func(s *tidekeeperv1.FreezeSpec) {
		s.From = &metav1.Time{Time: noon.Add(time.Duration(hours) * time.Hour)}
	}
}

func selecting(requirements ...tidekeeperv1.NamespaceSelectorRequirement) func(*tidekeeperv1.FreezeSpec) {
	return func(s *tidekeeperv1.FreezeSpec) {
		s.NamespaceSelector = &tidekeeperv1.NamespaceSelector{MatchExpressions: requirements}
	}
}

func team(values ...tidekeeperv1.LabelValue) tidekeeperv1.NamespaceSelectorRequirement {
	return tidekeeperv1.NamespaceSelectorRequirement{Key: "team", Operator: metav1.LabelSelectorOpIn, Values: values}
}

func TestInForce(t *testing.T) {
	for _, tt := range []struct {
		name    string
		freezes []tidekeeperv1.Freeze
		at      time.Duration
		want    string
	}{
		{name: "none"},
		{"from its creation", []tidekeeperv1.Freeze{freeze("a", 4)}, 0, "Freeze a until 2026-12-23T16:00:00Z: r"},
		{"by a clock that is behind the API server's", []tidekeeperv1.Freeze{freeze("a", 4)}, -time.Hour, "Freeze a until 2026-12-23T16:00:00Z: r"},
		{"not before a time", []tidekeeperv1.Freeze{freeze("a", 4, from(0))}, -time.Second, ""},
		{"until its end", []tidekeeperv1.Freeze{freeze("a", 4)}, 4*time.Hour - time.Second, "Freeze a until 2026-12-23T16:00:00Z: r"},
		{"not at its end", []tidekeeperv1.Freeze{freeze("a", 4)}, 4 * time.Hour, ""},
		{"from a time", []tidekeeperv1.Freeze{freeze("a", 4, from(2))}, time.Hour, ""},
		{"from a time on", []tidekeeperv1.Freeze{freeze("a", 4, from(2))}, 2 * time.Hour, "Freeze a until 2026-12-23T16:00:00Z: r"},
		{"from a time in the past", []tidekeeperv1.Freeze{freeze("a", 4, from(-2))}, -time.Hour, "Freeze a until 2026-12-23T16:00:00Z: r"},
		{"the one that ends last", []tidekeeperv1.Freeze{freeze("a", 4), freeze("c", 5), freeze("b", 5)}, 0, "Freeze b until 2026-12-23T17:00:00Z: r"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := noon.Add(tt.at)
			got := ""
			if p := period.InForce(period.In(tt.freezes, nil, now), now); p != nil {
				got = p.String()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSelects(t *testing.T) {
	shop := map[string]string{"team": "shop"}
	for _, tt := range []struct {
		name       string
		freeze     tidekeeperv1.Freeze
		everywhere bool
		shop, none bool
	}{
		{"no selector", freeze("a", 4), true, true, true},
		{"an empty one", freeze("a", 4, selecting()), true, true, true},
		{"of a label", freeze("a", 4, func(s *tidekeeperv1.FreezeSpec) {
			s.NamespaceSelector = &tidekeeperv1.NamespaceSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{"team": "shop"}}
		}), false, true, false},
		{"in", freeze("a", 4, selecting(team("blog", "shop"))), false, true, false},
		{"not in", freeze("a", 4, selecting(tidekeeperv1.NamespaceSelectorRequirement{Key: "team", Operator: metav1.LabelSelectorOpNotIn, Values: []tidekeeperv1.LabelValue{"shop"}})), false, false, true},
		{"one that cannot be used is about all", freeze("a", 4, selecting(tidekeeperv1.NamespaceSelectorRequirement{Key: "team", Operator: "Like"})), true, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := period.AppliesToAllNamespaces(&tt.freeze); got != tt.everywhere {
				t.Errorf("everywhere: %t, want %t", got, tt.everywhere)
			}
			if got := [2]bool{period.Selects(&tt.freeze, shop), period.Selects(&tt.freeze, nil)}; got != [2]bool{tt.shop, tt.none} {
				t.Errorf("selects the namespace with the label, and that without: %v", got)
			}
		})
	}
}

// TestInForceIsAnyOfThem checks for random freezes that InForce returns a period exactly if the
// given time is within some freeze that selects the namespace, and that no such freeze ends later.
func TestInForceIsAnyOfThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var freezes []tidekeeperv1.Freeze
		for range rapid.IntRange(0, 5).Draw(t, "freezes") {
			f := freeze(rapid.StringMatching("[a-c]").Draw(t, "name"), rapid.IntRange(1, 9).Draw(t, "until"))
			if rapid.Bool().Draw(t, "has from") {
				from(rapid.IntRange(-5, 8).Draw(t, "from"))(&f.Spec)
			}
			if rapid.Bool().Draw(t, "has selector") {
				selecting(team("shop"))(&f.Spec)
			}
			freezes = append(freezes, f)
		}
		labels := map[string]string{"team": rapid.SampledFrom([]string{"shop", "blog"}).Draw(t, "team")}
		now := noon.Add(time.Duration(rapid.IntRange(-6*60, 10*60).Draw(t, "now")) * time.Minute)
		var latest time.Time
		for i := range freezes {
			p := period.Of(&freezes[i])
			if p.Contains(now) && (freezes[i].Spec.NamespaceSelector == nil || labels["team"] == "shop") && p.Until.After(latest) {
				latest = p.Until
			}
		}
		var got time.Time
		if p := period.InForce(period.In(freezes, labels, now), now); p != nil {
			got = p.Until
		}
		if !got.Equal(latest) {
			t.Fatalf("it is in force until %s, want %s", got, latest)
		}
	})
}
