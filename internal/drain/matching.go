// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// MostCompared is the maximum number of PodDisruptionBudgets whose selectors are compared with the
// labels of a pod. Most budgets need not be compared, because they require a label that the pod
// lacks. The number is limited because users may create any number of budgets. If more budgets
// would have to be compared, the result is uncertain (see [match]).
const MostCompared = 256

// matching finds the PodDisruptionBudgets of a namespace that select a pod.
type matching struct {
	budgets []hashedBudget
	// byPair maps the hash of a label to the budgets that require the label. byKey maps the hash of
	// a label key to the budgets that require a label with that key. others lists the budgets that
	// require no label. All three contain indexes into the field budgets. Each budget is in a
	// single field of the three.
	byPair map[uint64][]int
	byKey  map[uint32][]int
	others []int
	// tooLarge is true if the selector of any budget was too large to be cached. Such a budget may
	// select any pod.
	tooLarge bool
}

// hashedBudget is a budget together with the requirements of its selector.
type hashedBudget struct {
	*CachedBudget
	requirements []hashedRequirement
	// uncertain is true if the selector also has a requirement on a label in podLabels. Such labels
	// are not part of the [Facts] about pods, so the requirement cannot be evaluated.
	uncertain bool
}

// hashedRequirement is a requirement of a label selector, with hashes in place of labels.
type hashedRequirement struct {
	operator selection.Operator
	key      uint32
	pairs    []uint64
}

// match lists the budgets that select a pod.
type match struct {
	of []*CachedBudget
	// uncertain is true if budgets that are not in the list may also select the pod.
	uncertain bool
}

// newMatching returns a matching that searches the given budgets, which are in the same namespace.
func newMatching(h *Hasher, list []*CachedBudget) *matching {
	m := &matching{byPair: map[uint64][]int{}, byKey: map[uint32][]int{}}
	uses := map[uint64]int{} // the number of budgets that require each label
	for _, b := range list {
		if b.tooLarge {
			m.tooLarge = true
		}
		hashed, ok := h.budget(b)
		if !ok {
			continue
		}
		m.budgets = append(m.budgets, hashed)
		for i := range hashed.requirements {
			for _, pair := range hashed.requirements[i].required() {
				uses[pair]++
			}
		}
	}
	for i := range m.budgets {
		m.add(i, uses)
	}
	return m
}

// add stores the budget with index i under the required label that the fewest other budgets
// require, so that as few budgets as possible must be compared with a pod. uses maps the hash of
// each label to the number of budgets that require the label.
func (m *matching) add(i int, uses map[uint64]int) {
	var rarest, exists *hashedRequirement
	fewest := 0
	for k := range m.budgets[i].requirements {
		r := &m.budgets[i].requirements[k]
		if r.operator == selection.Exists {
			exists = r
		}
		most := 0
		for _, pair := range r.required() {
			most = max(most, uses[pair])
		}
		if most > 0 && (rarest == nil || most < fewest) {
			rarest, fewest = r, most
		}
	}
	switch {
	case rarest != nil:
		for _, pair := range rarest.pairs {
			m.byPair[pair] = append(m.byPair[pair], i)
		}
	case exists != nil:
		m.byKey[exists.key] = append(m.byKey[exists.key], i)
	default:
		m.others = append(m.others, i)
	}
}

// of returns the budgets that select the pod with the given facts. It may stop after the second
// budget, because the API server rejects the eviction of a pod that several budgets select.
func (m *matching) of(facts Facts) match {
	if facts.flags()&labelsUnknown != 0 {
		return match{uncertain: len(m.budgets) > 0 || m.tooLarge}
	}
	has := facts.labels()
	found := match{uncertain: m.tooLarge}
	compared := 0
	compare := func(list []int) {
		for _, i := range list {
			if len(found.of) > 1 {
				return
			}
			if compared++; compared > MostCompared {
				found.uncertain = true
				return
			}
			switch b := &m.budgets[i]; {
			case !b.selects(has):
			case b.uncertain:
				found.uncertain = true
			default:
				found.of = append(found.of, b.CachedBudget)
			}
		}
	}
	for _, l := range has {
		compare(m.byPair[l.pair])
		compare(m.byKey[l.key])
	}
	compare(m.others)
	return found
}

// budget returns a budget with hashed requirements. It returns false if the budget selects no pods,
// or if its selector was too large to be cached.
func (h *Hasher) budget(b *CachedBudget) (hashedBudget, bool) {
	hashed := hashedBudget{CachedBudget: b}
	if !b.selecting || b.tooLarge {
		return hashed, false
	}
	var of metav1.LabelSelector
	if of.Unmarshal([]byte(b.selector)) != nil {
		return hashed, false
	}
	selector, err := metav1.LabelSelectorAsSelector(&of)
	if err != nil {
		return hashed, false // The API server ignores budgets with such a selector, too.
	}
	requirements, selectable := selector.Requirements()
	for i := range requirements {
		if slices.Contains(podLabels, requirements[i].Key()) {
			hashed.uncertain = true
			continue
		}
		hashed.requirements = append(hashed.requirements, h.requirement(&requirements[i]))
	}
	return hashed, selectable
}

func (h *Hasher) requirement(r *labels.Requirement) hashedRequirement {
	key := []byte(r.Key())
	hashed := hashedRequirement{operator: r.Operator(), key: h.hash(key, nil).key}
	for value := range r.Values() {
		hashed.pairs = append(hashed.pairs, h.hash(key, []byte(value)).pair)
	}
	return hashed
}

// selects reports whether a pod's labels satisfy all requirements of the budget's selector, apart
// from requirements on labels in podLabels.
func (b *hashedBudget) selects(has []label) bool {
	for i := range b.requirements {
		if !b.requirements[i].holds(has) {
			return false
		}
	}
	return true
}

// required returns the hashes of the labels of which a pod must have at least one to satisfy the
// requirement. It returns nil for operators that require no label with a particular value, such as
// Exists and NotIn.
func (r *hashedRequirement) required() []uint64 {
	switch r.operator {
	case selection.In, selection.Equals, selection.DoubleEquals:
		return r.pairs
	default:
		return nil
	}
}

// holds reports whether a pod's labels satisfy the requirement.
func (r *hashedRequirement) holds(has []label) bool {
	switch r.operator {
	case selection.Exists, selection.DoesNotExist:
		return slices.ContainsFunc(has, func(l label) bool { return l.key == r.key }) == (r.operator == selection.Exists)
	case selection.NotIn, selection.NotEquals:
		return !slices.ContainsFunc(has, func(l label) bool { return slices.Contains(r.pairs, l.pair) })
	default:
		return slices.ContainsFunc(has, func(l label) bool { return slices.Contains(r.pairs, l.pair) })
	}
}
