// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
)

// Freeze describes a Freeze that has not ended.
type Freeze struct {
	Name   string    `json:"name"`
	Reason string    `json:"reason"`
	From   time.Time `json:"from"`
	Until  time.Time `json:"until"`
	// InForce is set if the Freeze has begun.
	InForce bool `json:"inForce"`
	// Where describes the namespaces in which the Freeze prevents restarts from starting.
	Where    string                `json:"where"`
	HeldBack tidekeeperv1.HeldBack `json:"heldBack"`
	UID      string                `json:"-"`
}

// FreezesOf returns the Freezes that have not ended, ordered by start time.
func FreezesOf(list []*tidekeeperv1.Freeze, now time.Time) []Freeze {
	freezes := []Freeze{}
	for _, f := range list {
		p := period.Of(f)
		if !now.Before(p.Until) {
			continue
		}
		freezes = append(freezes, Freeze{
			Name: f.Name, Reason: f.Spec.Reason, From: p.From, Until: p.Until, InForce: p.Contains(now),
			Where: whereOf(f), HeldBack: f.Status.HeldBack, UID: string(f.UID),
		})
	}
	slices.SortStableFunc(freezes, func(a, b Freeze) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Name, b.Name))
	})
	return freezes
}

// whereOf describes the namespaces that a Freeze selects, by name or by label.
func whereOf(f *tidekeeperv1.Freeze) string {
	if period.AppliesToAllNamespaces(f) {
		return "all namespaces"
	}
	selector := f.Spec.NamespaceSelector
	if len(selector.MatchLabels) == 0 && len(selector.MatchExpressions) == 1 {
		e := selector.MatchExpressions[0]
		if e.Key == corev1.LabelMetadataName && e.Operator == metav1.LabelSelectorOpIn {
			names := make([]string, len(e.Values))
			for i, v := range e.Values {
				names[i] = string(v)
			}
			return strings.Join(names, ", ")
		}
	}
	compiled, err := period.Selector(f)
	if err != nil {
		return "all namespaces" // consistent with [period.Selects] for an invalid selector
	}
	return "namespaces with " + compiled.String()
}
