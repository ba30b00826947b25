// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// namesFor returns the names that the ScheduledRestart of a workload may have, in order of
// preference; it gets the first free name. The names are the workload's own name; the name with
// the kind, in case the first is taken, for example by a workload of another kind; and a name
// with a hash, which no other client uses by chance, in case the name with the kind is too long
// or taken.
func namesFor(kind *workload.Kind, name string) []string {
	suffix := "-" + strings.ToLower(kind.Kind)
	names := []string{name}
	if len(name)+len(suffix) <= validation.DNS1123SubdomainMaxLength {
		names = append(names, name+suffix)
	}
	hash := sha256.Sum256([]byte(kind.Kind + "/" + name))
	suffix = "-" + hex.EncodeToString(hash[:5]) + suffix
	// A label of a DNS name must not end with a hyphen or be empty.
	cut := name[:min(len(name), validation.DNS1123SubdomainMaxLength-len(suffix))]
	return append(names, strings.TrimRight(cut, "-.")+suffix)
}

// workloadNames returns the names of workloads of a kind that may use this name for their
// ScheduledRestart, as far as they can be derived from the name.
func workloadNames(kind *workload.Kind, name string) []string {
	names := []string{name}
	if base, ok := strings.CutSuffix(name, "-"+strings.ToLower(kind.Kind)); ok && base != "" {
		names = append(names, base)
	}
	return names
}

// place is the name that the ScheduledRestart of a workload has or will have, with the object
// that has this name now.
type place struct {
	name     string
	existing *tidekeeperv1.ScheduledRestart
	origin   origin
	// second is a second ScheduledRestart that the opt-in of this workload created, which can
	// happen with a stale cache. It is deleted.
	second *tidekeeperv1.ScheduledRestart
}

// find returns the place of a workload's ScheduledRestart. An existing ScheduledRestart keeps
// its name, even if a better name becomes free. Otherwise an orphan is adopted, and the end of
// a deletion is waited for. If another client has created a ScheduledRestart for this very
// workload, the opt-in creates none.
func find(kind *workload.Kind, object metav1.Object, existing []*tidekeeperv1.ScheduledRestart) place {
	var mine, waits, inTheWay, free *place
	var last place
	for i, name := range namesFor(kind, object.GetName()) {
		p := place{name: name}
		if i < len(existing) {
			p.existing = existing[i]
		}
		p.origin = originOf(kind, object, p.existing)
		switch {
		case p.origin == ours && mine == nil:
			mine = &p
		case p.origin == ours && p.existing.CreationTimestamp.Before(&mine.existing.CreationTimestamp):
			p.second = mine.existing
			mine = &p
		case p.origin == ours:
			mine.second = p.existing
		case (p.origin == orphan || p.origin == dying) && waits == nil:
			waits = &p
		case p.origin == foreign && p.existing.Spec.TargetRef.Equal(kind.Ref(object.GetName())) && inTheWay == nil:
			inTheWay = &p
		case p.origin == absent && free == nil:
			free = &p
		}
		last = p
	}
	for _, p := range []*place{mine, waits, inTheWay, free} {
		if p != nil {
			return *p
		}
	}
	return last
}
