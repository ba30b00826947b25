// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"
	"slices"
)

// nodeFit is the number of copies of a pod that fit on a single node, and the resource or
// constraint that limits this number.
type nodeFit struct {
	node   *node
	copies int64
	limit  string
}

// nodeFits lists the nodes of a group that can accept copies of a pod, with the number of copies
// for each node.
type nodeFits []nodeFit

// byDomain returns the number of copies that fit on the nodes of each domain of a topology key.
// Nodes without the key are omitted.
func (r nodeFits) byDomain(key string) map[string]int64 {
	sums := map[string]int64{}
	for _, fit := range r {
		if domain, has := fit.node.object.Labels[key]; has {
			sums[domain] += fit.copies
		}
	}
	return sums
}

// sharedLimit limits the total number of copies on the nodes of a topology domain.
type sharedLimit struct {
	name, key string
	// perNode is true if each node forms a separate topology domain.
	perNode bool
	// most returns the number of copies that each domain accepts under the limit. sums maps each
	// domain to the number of copies that fit on its nodes without the limit. certain is false if
	// the result depends on the domain that the scheduler chooses.
	most func(sums map[string]int64) (copies map[string]int64, certain bool)
	// floor returns the number of copies that the limit allows in a domain in any case, regardless
	// of the copies in other domains. It is nil if the minimum is unknown.
	floor func(domain string) int64
}

// shared returns the limits that the rules impose on the number of copies of the pod in a topology
// domain. It returns nil if r is nil.
func (r *rules) shared() (limits []sharedLimit) {
	if r == nil {
		return nil
	}
	for _, a := range r.anti {
		if a.self && !a.perNode {
			limits = append(limits, sharedLimit{name: ownAntiAffinity, key: a.key, most: oneEach})
		}
	}
	for i := range r.spreads {
		if s := &r.spreads[i]; s.grows {
			limits = append(limits, sharedLimit{name: topologySpread, key: s.key, perNode: s.perNode, most: s.most, floor: s.floor})
		}
	}
	if r.startsGroup() {
		key := r.affinity[0].key
		several := slices.ContainsFunc(r.affinity, func(c *counter) bool { return c.key != key })
		limits = append(limits, sharedLimit{name: podAffinity, key: key, most: func(sums map[string]int64) (map[string]int64, bool) {
			copies, certain := oneDomain(sums)
			return copies, certain && !several
		}})
	}
	return limits
}

// oneEach implements [sharedLimit.most] for the limit of a single copy in each domain.
func oneEach(sums map[string]int64) (map[string]int64, bool) {
	copies := map[string]int64{}
	for domain, sum := range sums {
		copies[domain] = min(sum, 1)
	}
	return copies, true
}

// oneDomain implements [sharedLimit.most] for copies that must all be in the same domain. It
// assumes that this is the domain with the largest sum. The scheduler may choose another domain, so
// the result is certain only if all sums other than 0 are equal.
func oneDomain(sums map[string]int64) (map[string]int64, bool) {
	best, certain := "", true
	for domain, sum := range sums {
		if best == "" || sum > sums[best] || sum == sums[best] && domain < best {
			best = domain
		}
	}
	for _, sum := range sums {
		certain = certain && (sum == 0 || sum == sums[best])
	}
	return map[string]int64{best: sums[best]}, certain
}

// most implements [sharedLimit.most]. Copies are placed until no domain accepts another copy. The
// domain with the fewest pods always accepts a copy while one fits on its nodes, so at the end it
// is full. Every other domain is then also full, or has maxSkew more pods. This result does not
// depend on the order in which copies are placed.
func (s *spreadRule) most(sums map[string]int64) (map[string]int64, bool) {
	least, count := int64(math.MaxInt64), 0
	for domain, value := range s.topology.values {
		if domain := int32(domain); s.domains.nodes.at(domain) > 0 { //nolint:gosec // There are fewer nodes than that.
			least = min(least, int64(s.pods.at(domain))+sums[value])
			count++
		}
	}
	if count < max(1, s.minDomains) {
		least = 0 // as in the scheduler
	}
	copies := map[string]int64{}
	for domain, sum := range sums {
		copies[domain] = max(0, min(sum, least+int64(s.maxSkew)-int64(s.in(domain))))
	}
	return copies, true
}

// floor implements [sharedLimit.floor]. It returns the number of copies that the domain accepts
// now. Copies in other domains cannot reduce this number, because they cannot reduce the smallest
// number of pods in any domain.
func (s *spreadRule) floor(domain string) int64 {
	return max(0, int64(s.least(s.minDomains)+s.maxSkew-s.in(domain)))
}

// limited is the number of copies of a pod on a group of nodes under a shared limit.
type limited struct {
	sharedLimit
	total int64
	// sums maps each domain to the number of copies that fit on its nodes without the limit. copies
	// maps each domain to the number of copies that it accepts under the limit.
	sums, copies map[string]int64
	certain      bool
}

// apply returns the number of copies that the nodes accept together under a limit.
func (r nodeFits) apply(limit sharedLimit) limited {
	l := limited{sharedLimit: limit, sums: r.byDomain(limit.key)}
	l.copies, l.certain = limit.most(l.sums)
	for _, count := range l.copies {
		l.total += count
	}
	for _, fit := range r {
		if _, has := fit.node.object.Labels[limit.key]; !has {
			l.total += fit.copies
		}
	}
	return l
}

// of returns the number of copies that the node's domain accepts under the limit. fewer is true if
// more copies fit on the nodes of the domain without the limit. A node in no domain is not limited.
func (l *limited) of(n *node) (copies int64, fewer bool) {
	domain, has := n.object.Labels[l.key]
	if !has {
		return math.MaxInt64, false
	}
	return l.copies[domain], l.copies[domain] < l.sums[domain]
}

// applyAll applies the limits to the copies on the nodes, and returns the result for the strictest
// limit. uncertain names the constraints that make the total only an upper bound.
func (r nodeFits) applyAll(limits []sharedLimit) (best limited, uncertain []string) {
	for i, limit := range limits {
		if l := r.apply(limit); i == 0 || l.total < best.total {
			best = l
		}
	}
	if len(limits) == 1 {
		if !best.certain {
			uncertain = []string{best.name}
		}
		return best, uncertain
	}
	if main, bounds, ok := nested(limits); ok {
		least, most := r.capped(bounds, false).apply(main), r.capped(bounds, true).apply(main)
		if most.total < best.total {
			best = most
		}
		if least.total == best.total && least.certain && most.certain {
			return best, nil
		}
	}
	for _, limit := range limits {
		uncertain = appendNew(uncertain, []string{limit.name})
	}
	return best, uncertain
}

// nested splits the limits into the limit whose domains can have several nodes, main, and the
// limits for which each node is a separate domain, bounds. ok is false unless there is exactly one
// limit of the first kind, and all other limits have a floor.
func nested(limits []sharedLimit) (main sharedLimit, bounds []sharedLimit, ok bool) {
	found := 0
	for _, limit := range limits {
		switch {
		case !limit.perNode:
			main = limit
			found++
		case limit.floor == nil:
			return main, nil, false
		default:
			bounds = append(bounds, limit)
		}
	}
	return main, bounds, found == 1
}

// capped returns r with the numbers of copies reduced by the given limits. If `most` is set, they
// are reduced to the maximum numbers that the limits allow, and otherwise to the floors of the
// limits.
func (r nodeFits) capped(limits []sharedLimit, most bool) nodeFits {
	result := slices.Clone(r)
	for _, limit := range limits {
		copies, _ := limit.most(r.byDomain(limit.key))
		for i, fit := range result {
			domain := fit.node.object.Labels[limit.key]
			bound := copies[domain]
			if !most {
				bound = limit.floor(domain)
			}
			if fit.copies > bound {
				result[i].copies, result[i].limit = bound, limit.name
			}
		}
	}
	return result
}
