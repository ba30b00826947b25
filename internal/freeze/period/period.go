// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package period decides which freezes are in force in a namespace at a given time. It uses no
// client, clock or logger.
package period

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Period is the time during which a Freeze is in force, from From (inclusive) to Until (exclusive).
type Period struct {
	Name, Reason string
	From, Until  time.Time
	// AtOnce is true if the Freeze has no spec.from, so that it is in force as soon as it exists.
	// From is then the creation time, which the API server sets; the API server's clock may be
	// ahead of the reader's clock.
	AtOnce bool
}

// Of returns the period of a Freeze. Without spec.from, the period begins when the Freeze is
// created.
func Of(f *tidekeeperv1.Freeze) Period {
	p := Period{Name: f.Name, Reason: f.Spec.Reason, From: f.CreationTimestamp.Time, Until: f.Spec.Until.Time, AtOnce: f.Spec.From == nil}
	if f.Spec.From != nil {
		p.From = f.Spec.From.Time
	}
	return p
}

// HasBegun reports whether the period has begun at the given time.
func (p Period) HasBegun(at time.Time) bool { return p.AtOnce || !at.Before(p.From) }

// Contains reports whether the period contains the given time.
func (p Period) Contains(at time.Time) bool { return p.HasBegun(at) && at.Before(p.Until) }

// String returns the name, the end and the reason of the freeze, for messages about objects that
// wait for the freeze to end.
func (p Period) String() string {
	return fmt.Sprintf("Freeze %s until %s: %s", p.Name, p.Until.UTC().Format(time.RFC3339), p.Reason)
}

// InForce returns the period that ends last among the periods that contain the given time; nil if
// there is none. If several periods end at the same time, it returns the first by name.
func InForce(periods []Period, at time.Time) *Period {
	var last *Period
	for i := range periods {
		p := &periods[i]
		if p.Contains(at) && (last == nil || p.Until.After(last.Until) || p.Until.Equal(last.Until) && p.Name < last.Name) {
			last = p
		}
	}
	return last
}

// AppliesToAllNamespaces reports whether a Freeze applies to all namespaces regardless of their
// labels.
func AppliesToAllNamespaces(f *tidekeeperv1.Freeze) bool {
	selector, err := Selector(f)
	return err != nil || selector.Empty()
}

// Selector returns the selector of the namespaces that a Freeze applies to. A Freeze without a
// selector applies to all namespaces. Selector returns an error if the selector is invalid; the
// CRD's schema rejects such a selector.
func Selector(f *tidekeeperv1.Freeze) (labels.Selector, error) {
	if f.Spec.NamespaceSelector == nil {
		return labels.Everything(), nil
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for key, value := range f.Spec.NamespaceSelector.MatchLabels {
		selector.MatchLabels[key] = string(value)
	}
	for _, e := range f.Spec.NamespaceSelector.MatchExpressions {
		requirement := metav1.LabelSelectorRequirement{Key: e.Key, Operator: e.Operator}
		for _, v := range e.Values {
			requirement.Values = append(requirement.Values, string(v))
		}
		selector.MatchExpressions = append(selector.MatchExpressions, requirement)
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("spec.namespaceSelector: %w", err)
	}
	return compiled, nil
}

// Selects reports whether a Freeze applies to a namespace with the given labels. A Freeze with an
// invalid selector applies to all namespaces, since a missed restart does less harm than an
// unwanted restart.
func Selects(f *tidekeeperv1.Freeze, namespaceLabels map[string]string) bool {
	selector, err := Selector(f)
	return err != nil || selector.Matches(labels.Set(namespaceLabels))
}

// In returns the periods of the freezes that apply to a namespace with the given labels and have
// not ended at the time now.
func In(freezes []tidekeeperv1.Freeze, namespaceLabels map[string]string, now time.Time) []Period {
	var periods []Period
	for i := range freezes {
		f := &freezes[i]
		if p := Of(f); now.Before(p.Until) && Selects(f, namespaceLabels) {
			periods = append(periods, p)
		}
	}
	return periods
}
